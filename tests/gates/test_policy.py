"""Policies are checked before any data is read, and each complaint names the rule and the key."""

import pytest

import crossfusion as cf
from crossfusion.gates import read_policy

RULE = {"between": "scanner", "max": 0.02}


def rules(*tables, **more):
    return read_policy({"rule": [*tables], **more}).rules


def test_a_rule_with_all_of_its_keys(tmp_path):
    path = tmp_path / "policy.toml"
    path.write_text(
        '[defaults]\ngiven = "tissue"\nunits = ["patient", "slide"]\n\n'
        '[[rule]]\nname = "scanners"\nbetween = "scanner"\nmax = 0.02\non = "upper"\nlevel = 0.9\nweights = "pooled"\n'
        "each_pair = true\nmin_units = 3\n\n"
        '[[ rule ]]\nbetween = "tissue"\ngiven = []\nmin = 1\n'
        '[[rule]]\ndrift = "week"\nreference = "first:4"\nalarm = 0.001\n'
    )
    policy = read_policy(path)
    scanners, tissues, weeks = policy.rules
    assert policy.name == str(path)
    assert (scanners.name, scanners.between, scanners.given) == ("scanners", ("scanner",), ("tissue",))
    assert scanners.factors == ("scanner", "tissue", "patient", "slide")
    assert (scanners.confidence, scanners.needs_rows, scanners.min_units) == (0.9, False, 3)
    assert scanners.requirement == "upper limit of CFD (90%) at most 0.02"
    assert (tissues.name, tissues.given, tissues.limit) == ("tissue: CFD at least 1", (), 1.0)
    assert (weeks.between, weeks.given, weeks.limit, weeks.units) == (("week",), ("tissue",), 0.001, ())
    assert weeks.name == "week given tissue: no alarm at 0.001"
    assert [rule.line for rule in policy.rules] == [5, 15, 19]


@pytest.mark.parametrize(
    ("tables", "said"),
    [
        ([], "the policy has no rules: add one"),
        ([{"between": "scanner"}], "rule 1 of the policy has no limit: give it one of max, min, fused_within, "),
        ([RULE | {"min": 1}], "rule 1 of the policy has both max and min: give it one"),
        ([{"max": 0.02}], "rule 1 of the policy: between is missing: name the column of the groups"),
        ([RULE | {"maxx": 1}], "rule 1 of the policy has no key 'maxx': did you mean 'max'?"),
        ([RULE, RULE | {"name": "b", "betwen": "x"}], "rule 2 of the policy ('b') has no key 'betwen': did you mean"),
        ([RULE | {"max": "0.02"}], "rule 1 of the policy: max='0.02' must be a finite number, 0 or more"),
        ([RULE | {"max": True}], "max=True must be a finite number"),
        ([RULE | {"max": float("nan")}], "max=nan must be a finite number"),
        ([RULE | {"max": -0.1}], "max=-0.1 must be a finite number, 0 or more"),
        ([RULE | {"on": "uper"}], "on='uper' is not known: choose 'estimate' or 'lower' or 'upper'"),
        ([RULE | {"level": 95}], "level=95 must be a confidence level"),
        ([RULE | {"each_pair": "yes"}], "each_pair='yes' must be true or false"),
        ([RULE | {"between": 3}], "between=[3] must be the name of a column"),
        ([RULE | {"between": []}], "between is empty: name at least one column"),
        ([RULE | {"between": {"a": 1}}], "between=[{'a': 1}] must be the name of a column"),
        ([RULE | {"given": "scanner"}], "given names 'scanner', which is compared itself"),
        ([RULE | {"given": "a", "units": "a"}], "given and units name the same column"),
        ([RULE | {"alpha": 0.1}], "rule 1 of the policy has alpha, which does not apply to max"),
        ([{"between": "a", "fused_within": 0}], "fused_within=0 must be a finite number above 0"),
        ([{"between": "a", "fused_within": 0.1, "alpha": 0.5}], "alpha=0.5 must be above 0 and at most 0.25"),
        ([{"between": "a", "max_separability": 2}], "max_separability=2 must be a balanced accuracy"),
        ([{"drift": "week"}], "reference is missing: name the periods, such as 'first:8'"),
        ([{"drift": "week", "reference": 8}], "reference=8 must be text such as 'first:8'"),
        ([{"drift": "week", "reference": "first:8", "alarm": 0}], "alarm=0 must be a rate of false alarms"),
        ([{"drift": "week", "reference": "first:8", "between": "a"}], "has between, which does not apply to drift"),
        ([RULE, dict(RULE)], "the policy has two rules called 'scanner: CFD at most 0.02': give each rule a name"),
        (["between"], "rule in the policy is not a list of tables: begin each rule with [[rule]]"),
        ([RULE | {"name": " "}], "name=' ' must be text that is not empty"),
    ],
)
def test_bad_rules(tables, said):
    with pytest.raises(cf.InputError) as problem:
        rules(*tables)
    assert said in str(problem.value)


def test_bad_defaults():
    with pytest.raises(cf.InputError, match=r"\[defaults\] of the policy has no key 'unit': did you mean 'units'"):
        rules(RULE, defaults={"unit": "patient"})
    for key in ("between", "max", "units"):
        with pytest.raises(cf.InputError, match=f"the policy has '{key}' outside of a rule: put it below \\[\\[rule"):
            rules(RULE, **{key: "scanner"})
    with pytest.raises(cf.InputError, match="the policy has no key 'default': did you mean 'defaults'"):
        rules(RULE, default={})
    with pytest.raises(cf.InputError, match=r"defaults in the policy is not a table: write \[defaults\]"):
        rules(RULE, defaults=["a"])
    with pytest.raises(cf.InputError, match=r"level=2 must be a confidence level"):
        rules(RULE, defaults={"level": 2})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            b"[[rule]]\nmax 0.02\n",
            "is not valid TOML (Expected '=' after a key in a key/value pair (at line 2, column 5))",
        ),
        (b"", "has no rules: add one"),
        (b"# only a comment\n", "has no rules: add one"),
        (b'[rule]\nbetween = "a"\nmax = 1\n', "is not a list of tables: begin each rule with [[rule]]"),
        (b"\xff\xfe", "cannot be read as text"),
    ],
)
def test_bad_files(tmp_path, text, said):
    path = tmp_path / "policy.toml"
    path.write_bytes(text)
    with pytest.raises((cf.FileError, cf.InputError)) as problem:
        read_policy(path)
    assert said in str(problem.value)
    assert str(path) in str(problem.value)


def test_files_that_are_not_there(tmp_path):
    with pytest.raises(cf.FileError, match="does not exist: name the TOML file of the policy first"):
        read_policy(tmp_path / "none.toml")
    with pytest.raises(cf.FileError, match="is not a plain file"):
        read_policy(tmp_path)
    with pytest.raises(cf.InputError, match="policy=3 must be a TOML file"):
        read_policy(3)
