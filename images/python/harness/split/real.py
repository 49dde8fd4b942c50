"""Classes of the standard library that tests like to replace, as they were when this was loaded.

Held in one object, because what replaces them (freezegun, say) looks through the attributes of every module.
"""

import datetime
import types

REAL = types.SimpleNamespace(date=datetime.date, datetime=datetime.datetime, time=datetime.time)
