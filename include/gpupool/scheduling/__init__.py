"""Pure rules that turn the pool file and the capacity into slots per queue. No Airflow in here."""
