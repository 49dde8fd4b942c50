"""The split oracle: sealed tests in one process, product code in another, and what crosses between them.

`serve` is the product's end, `connect` the oracle's, `hook` answers imports, `codec` is what both speak. Plain data
crosses by value and is rebuilt from exact built-in types; everything else crosses as a handle. Never pickle, never
marshal, never an import by a name that the product chose.
"""
