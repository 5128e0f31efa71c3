"""How tasks reach gpupool's routes: they may not open the metadata database themselves."""

from datetime import datetime
from typing import Any

import httpx

from gpupool.exceptions import ApiError
from gpupool.settings import Settings

_TIMEOUT_S = 60.0


class ApiClient:
    """Speaks for the service user that ``Settings`` names. Every method raises ApiError if the API does not answer."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._http = httpx.Client(base_url=settings.api_url, timeout=_TIMEOUT_S)

    def apply_pools(self, capacity: dict[str, int]) -> list[str]:
        """Bring Airflow's pools to the pool file; returns the steps taken."""
        steps: list[str] = self._call("POST", "/gpupool/pools", json={"capacity": capacity})
        return steps

    def attempts(self, since: datetime) -> list[dict[str, Any]]:
        """Rows of table ``job_attempt`` for attempts alive at or after ``since``."""
        rows: list[dict[str, Any]] = self._call("GET", "/gpupool/attempts", params={"since": since.isoformat()})
        return rows

    def _call(self, method: str, path: str, **arguments: Any) -> Any:
        if "Authorization" not in self._http.headers:
            token = self._send("POST", "/auth/token", json=self._credentials())["access_token"]
            self._http.headers["Authorization"] = f"Bearer {token}"
        return self._send(method, path, **arguments)

    def _send(self, method: str, path: str, **arguments: Any) -> Any:
        try:
            answer = self._http.request(method, path, **arguments)
        except httpx.HTTPError as error:
            raise ApiError(f"{method} {self._settings.api_url}{path} failed: {error}. Is the API server up?") from error
        if answer.is_error:
            raise ApiError(
                f"{method} {self._settings.api_url}{path} answered {answer.status_code}: {answer.text[:500]}"
            )
        return answer.json()

    def _credentials(self) -> dict[str, str]:
        file = self._settings.api_password_file
        try:
            password = file.read_text(encoding="utf-8").strip()
        except OSError as error:
            raise ApiError(
                f"The API password file {file} cannot be read ({error.strerror}). Set GPUPOOL_API_PASSWORD_FILE to it."
            ) from error
        return {"username": self._settings.api_user, "password": password}
