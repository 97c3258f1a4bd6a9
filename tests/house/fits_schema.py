"""fits_schema.py FOLDER REPORT...: each report, in JSON, has the types and the required keys of its schema in FOLDER, and no
key that the schema does not list. An object without listed keys may have any."""
import json
import sys

TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None)}
failed = False


def has_type(value, name):
    if name == "number":
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    return isinstance(value, TYPES[name])


def check(value, schema, place):
    global failed
    names = schema.get("type", [])
    names = [names] if isinstance(names, str) else names
    faults = []
    if names and not any(has_type(value, name) for name in names):
        faults.append(f"is {value!r}, not {names}")
    elif isinstance(value, dict):
        keys = schema.get("properties", {})
        faults += [f"has no {key}" for key in schema.get("required", []) if key not in value]
        faults += [f"has {key}, which is not listed" for key in value if keys and key not in keys]
        for key in value:
            if key in keys:
                check(value[key], keys[key], f"{place}.{key}")
    elif isinstance(value, list):
        for element in value:
            check(element, schema.get("items", {}), place + "[]")
    for fault in faults:
        print(f"{place} {fault}", file=sys.stderr)
    failed = failed or bool(faults)


for path in sys.argv[2:]:
    with open(path, encoding="utf-8") as file:
        report = json.load(file)
    with open(f"{sys.argv[1]}/{report['schema'].replace('/', '.')}.schema.json", encoding="utf-8") as file:
        check(report, json.load(file), path)
sys.exit(failed)
