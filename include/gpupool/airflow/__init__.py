"""The one room that imports Airflow, and everything else; nothing imports it."""
