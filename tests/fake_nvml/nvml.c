/* A stand-in for NVIDIA's libnvidia-ml.so.1 that plays a machine described by a text file, so that the real pynvml path
 * runs on machines without GPUs. The file is named by FAKE_NVML_SCENARIO; its lines:
 *
 *   init <nvmlReturn>                           what nvmlInit answers (18 = driver/library version mismatch)
 *   driver <text>    cuda <number>
 *   gpu <uuid> <name_with_underscores> <memory_bytes> [mig]
 *   mig <uuid> <name_with_underscores> <memory_bytes>     an instance of the gpu above
 *   fault <nvmlReturn>                          every call on the device above answers this (15 = GPU is lost)
 *   unsupported <utilization|power|temperature> the device above does not know this metric
 *   util <percent> ...                          utilization of the device above, one value per reading, then from the start
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_DEVICES 64
#define MAX_STEPS 64
enum { SUCCESS = 0, UNINITIALIZED = 1, INVALID_ARGUMENT = 2, NOT_SUPPORTED = 3, NOT_FOUND = 6 };

typedef struct device {
    char uuid[96], name[96];
    unsigned long long memory;
    int parent, mig_mode, fault, no_utilization, no_power, no_temperature;
    unsigned int steps, step, utilization[MAX_STEPS];
} device;
typedef struct { unsigned int gpu, memory; } utilization_t;
typedef struct { unsigned long long total, free, used; } memory_t;

static device devices[MAX_DEVICES];
static int count, init_answer, initialized;
static char driver[80] = "580.95.05";
static int cuda = 13000;

static void load(void) {
    const char *path = getenv("FAKE_NVML_SCENARIO");
    FILE *file = path ? fopen(path, "r") : NULL;
    char line[512], word[32], uuid[96], name[96], extra[16];
    unsigned long long memory;
    count = init_answer = 0;
    if (!file) return;
    while (fgets(line, sizeof line, file)) {
        device *last = count ? &devices[count - 1] : NULL;
        if (sscanf(line, "%31s", word) != 1 || word[0] == '#') continue;
        if (!strcmp(word, "init")) sscanf(line, "%*s %d", &init_answer);
        else if (!strcmp(word, "driver")) sscanf(line, "%*s %79s", driver);
        else if (!strcmp(word, "cuda")) sscanf(line, "%*s %d", &cuda);
        else if ((!strcmp(word, "gpu") || !strcmp(word, "mig")) && count < MAX_DEVICES) {
            int parts = sscanf(line, "%*s %95s %95s %llu %15s", uuid, name, &memory, extra);
            int parent = -1;
            if (!strcmp(word, "mig"))
                for (parent = count - 1; devices[parent].parent >= 0;) parent--;
            device *made = &devices[count++];
            memset(made, 0, sizeof *made);
            strcpy(made->uuid, uuid);
            strcpy(made->name, name);
            for (char *c = made->name; *c; c++) if (*c == '_') *c = ' ';
            made->memory = memory;
            made->parent = parent;
            made->mig_mode = parts == 4;
        } else if (last && !strcmp(word, "fault")) sscanf(line, "%*s %d", &last->fault);
        else if (last && !strcmp(word, "unsupported")) {
            sscanf(line, "%*s %31s", word);
            if (!strcmp(word, "utilization")) last->no_utilization = 1;
            if (!strcmp(word, "power")) last->no_power = 1;
            if (!strcmp(word, "temperature")) last->no_temperature = 1;
        } else if (last && !strcmp(word, "util")) {
            char *cursor = strchr(line, ' ');
            for (char *end; last->steps < MAX_STEPS; cursor = end) {
                unsigned long value = strtoul(cursor, &end, 10);
                if (end == cursor) break;
                last->utilization[last->steps++] = (unsigned int)value;
            }
        }
    }
    fclose(file);
}

static int check(const device *d) { return !initialized ? UNINITIALIZED : !d ? INVALID_ARGUMENT : d->fault; }

int nvmlInitWithFlags(unsigned int flags) {
    static int loaded;
    (void)flags;
    if (!loaded++) load(); /* once: a reading's step must survive the next session */
    initialized += init_answer == SUCCESS;
    return init_answer;
}
int nvmlInit_v2(void) { return nvmlInitWithFlags(0); }
int nvmlShutdown(void) { return initialized > 0 ? (initialized--, SUCCESS) : UNINITIALIZED; }

const char *nvmlErrorString(int code) {
    switch (code) {
    case UNINITIALIZED: return "Uninitialized";
    case INVALID_ARGUMENT: return "Invalid Argument";
    case NOT_SUPPORTED: return "Not Supported";
    case 4: return "Insufficient Permissions";
    case NOT_FOUND: return "Not Found";
    case 9: return "Driver Not Loaded";
    case 15: return "GPU is lost";
    case 18: return "Driver/library version mismatch";
    default: return "Unknown Error";
    }
}

int nvmlSystemGetDriverVersion(char *text, unsigned int length) { snprintf(text, length, "%s", driver); return SUCCESS; }
int nvmlSystemGetCudaDriverVersion(int *version) { *version = cuda; return SUCCESS; }

int nvmlDeviceGetCount_v2(unsigned int *number) {
    *number = 0;
    for (int i = 0; i < count; i++) *number += devices[i].parent < 0;
    return SUCCESS;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned int index, device **handle) {
    for (int i = 0; i < count; i++)
        if (devices[i].parent < 0 && index-- == 0) { *handle = &devices[i]; return check(*handle); }
    return INVALID_ARGUMENT;
}
int nvmlDeviceGetMigMode(device *d, unsigned int *current, unsigned int *pending) {
    if (check(d)) return check(d);
    if (!strstr(d->name, "H100")) return NOT_SUPPORTED;
    *current = *pending = (unsigned int)d->mig_mode;
    return SUCCESS;
}
int nvmlDeviceGetMaxMigDeviceCount(device *d, unsigned int *number) { *number = 7; return check(d); }
int nvmlDeviceGetMigDeviceHandleByIndex(device *d, unsigned int index, device **handle) {
    if (check(d)) return check(d);
    for (int i = 0; i < count; i++)
        if (devices[i].parent == d - devices && index-- == 0) { *handle = &devices[i]; return SUCCESS; }
    return NOT_FOUND;
}
int nvmlDeviceIsMigDeviceHandle(device *d, unsigned int *is_mig) { *is_mig = d->parent >= 0; return SUCCESS; }
int nvmlDeviceGetUUID(device *d, char *text, unsigned int length) {
    if (check(d)) return check(d);
    snprintf(text, length, "%s", d->uuid);
    return SUCCESS;
}
int nvmlDeviceGetName(device *d, char *text, unsigned int length) {
    if (check(d)) return check(d);
    snprintf(text, length, "%s", d->name);
    return SUCCESS;
}
int nvmlDeviceGetUtilizationRates(device *d, utilization_t *rates) {
    if (check(d)) return check(d);
    if (d->no_utilization || d->parent >= 0) return NOT_SUPPORTED; /* as on real MIG instances */
    rates->gpu = d->steps ? d->utilization[d->step++ % d->steps] : 0;
    rates->memory = rates->gpu / 2;
    return SUCCESS;
}
int nvmlDeviceGetMemoryInfo(device *d, memory_t *memory) {
    if (check(d)) return check(d);
    memory->total = d->memory;
    memory->used = d->memory / 100 * (d->steps ? d->utilization[d->step % d->steps] : 1);
    memory->free = memory->total - memory->used;
    return SUCCESS;
}
int nvmlDeviceGetPowerUsage(device *d, unsigned int *milliwatts) {
    *milliwatts = 300000;
    return check(d) ? check(d) : d->no_power || d->parent >= 0 ? NOT_SUPPORTED : SUCCESS;
}
int nvmlDeviceGetTemperature(device *d, int sensor, unsigned int *celsius) {
    (void)sensor;
    *celsius = 55;
    return check(d) ? check(d) : d->no_temperature ? NOT_SUPPORTED : SUCCESS;
}
