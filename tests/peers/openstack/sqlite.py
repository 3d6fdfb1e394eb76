"""Makes OpenStack's services wait for one another over sqlite. Imported before anything else of theirs."""
import sqlite3

connect = sqlite3.connect


def patient(*args, **kwargs):
    connection = connect(*args, **{**kwargs, "timeout": 60})
    # Nobody's power is cut here.
    connection.execute("PRAGMA synchronous=OFF")
    return connection


def install():
    """A transaction takes the lock when it begins: one that takes it later may be refused at once, whatever the timeout."""
    sqlite3.connect = sqlite3.dbapi2.connect = patient
    import sqlalchemy
    from oslo_db.sqlalchemy import engines

    class Immediate:
        def __getattr__(self, name):
            return getattr(sqlalchemy, name)

        def text(self, statement):
            return sqlalchemy.text("BEGIN IMMEDIATE" if statement == "BEGIN" else statement)

    engines.sqlalchemy = Immediate()
