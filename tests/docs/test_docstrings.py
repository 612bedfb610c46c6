"""Docstrings of everything public: numpydoc finds nothing missing, and every example runs."""

import doctest
import inspect
import re

import matplotlib.pyplot as plt
import pytest
from numpydoc.validate import validate
from support.pages import load_tool

CHECKED = {"GL08", "PR01", "PR02", "PR03", "RT01", "RT03", "SS01", "SS02", "SS03", "SS06"}


public_names = load_tool("public_names")
OBJECTS = dict(public_names.names())
CLASSES = {name: kind for name, kind in OBJECTS.items() if inspect.isclass(kind)}


def _complaints(found, codes):
    errors = validate(f"{found.__module__}.{found.__qualname__}")["errors"]
    if "\nYields\n" in inspect.getdoc(found):
        codes = codes - {"RT01"}
    return [f"{code}: {message}" for code, message in errors if code in codes]


def _examples(found):
    return re.split(r"\nExamples\n-+\n", inspect.getdoc(found) or "")[1:]


@pytest.mark.parametrize("name", OBJECTS)
def test_a_public_name_is_documented_with_an_example(name):
    assert _complaints(OBJECTS[name], CHECKED | {"EX01"}) == []


@pytest.mark.parametrize("name", CLASSES)
def test_the_methods_of_a_public_class_are_documented(name):
    for method, found in public_names.methods(CLASSES[name]):
        function = inspect.unwrap(getattr(found, "fget", None) or getattr(found, "__func__", found))
        complaints = _complaints(function, CHECKED - {"RT01"} if isinstance(found, property) else CHECKED)
        assert complaints == [], method


@pytest.mark.parametrize("name", CLASSES)
def test_every_method_of_a_public_class_is_called_in_its_example_or_in_that_of_the_class(name):
    for method, found in public_names.methods(CLASSES[name]):
        if not isinstance(found, property):
            function = inspect.unwrap(getattr(found, "__func__", found))
            assert f".{method}(" in "".join([*_examples(CLASSES[name]), *_examples(function)]), method


@pytest.mark.parametrize("name", OBJECTS)
def test_examples_run_and_print_what_they_say(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    kind = OBJECTS[name]
    own = [kind, *(found for _, found in public_names.methods(kind))] if inspect.isclass(kind) else [kind]
    runner = doctest.DocTestRunner()
    for found in own:
        found = getattr(found, "fget", None) or getattr(found, "__func__", found)
        test = doctest.DocTestParser().get_doctest(inspect.getdoc(found) or "", {}, name, None, None)
        runner.run(test)
    plt.close("all")
    assert runner.failures == 0
    assert runner.tries > 0


def test_what_is_called_between_rooms_is_a_method_of_a_public_class():
    known = {base.__name__: base for kind in CLASSES.values() for base in kind.__mro__}
    for kind, methods in public_names.BETWEEN_ROOMS.items():
        assert [method for method in methods if not hasattr(known[kind], method)] == [], kind
