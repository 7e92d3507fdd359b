"""The signature broken: what it covers, how it is compared, and who has to have one."""

from functools import partial

from tests.mutants.mutant import Mutant

SCHEME = "shared/sume/signature.py"
CHECKS = "api/checks.py"
TESTS = "tests/sume/test_signature.py::"
CASES = "tests/api/test_checks.py::test_a_delivery_that_fails_a_check_is_refused_with_its_code"
COMPARE = "hmac.compare_digest(expected, signature)"
EACH = "    for signature in signatures:\n"

signature = partial(Mutant, "signature")

MUTANTS = (
    signature(
        "the comparison tells by its time how much was right",
        SCHEME,
        COMPARE,
        "expected == signature",
        (f"{TESTS}test_every_pair_is_compared_in_constant_time",),
    ),
    signature(
        "the comparison ends at the first match",
        SCHEME,
        EACH,
        f"{EACH}        if found:\n            break\n",
        (f"{TESTS}test_every_pair_is_compared_in_constant_time",),
    ),
    signature(
        "half of the digest is enough",
        SCHEME,
        COMPARE,
        "hmac.compare_digest(expected[:32], signature[:32])",
        (f"{TESTS}test_any_flipped_bit_fails",),
    ),
    signature(
        "only the first signature of a list counts",
        SCHEME,
        EACH,
        "    for signature in list(signatures)[:1]:\n",
        (f"{TESTS}test_one_good_signature_in_a_list_is_enough",),
    ),
    signature(
        "the timestamp is not signed",
        SCHEME,
        '    message = timestamp + b"." + body\n',
        '    message = b"." + body\n',
        (f"{TESTS}test_any_flipped_bit_fails", f"{TESTS}test_what_was_signed_matches"),
    ),
    signature(
        "only the first secret may have signed",
        SCHEME,
        "for secret in secrets]",
        "for secret in secrets[:1]]",
        (f"{TESTS}test_what_was_signed_matches",),
    ),
    signature(
        "any version of the scheme is taken for v1",
        SCHEME,
        'rb"v1=([0-9a-fA-F]{64})"',
        'rb"v[0-9]=([0-9a-fA-F]{64})"',
        (f"{TESTS}test_what_is_not_well_formed_is_no_signature",),
    ),
    signature(
        "a timestamp is whatever int() reads",
        SCHEME,
        'TIMESTAMP = re.compile(rb"[0-9]+")',
        'TIMESTAMP = re.compile(rb"\\s*[-+]?[0-9_]+\\s*")',
        (f"{TESTS}test_anything_but_ascii_digits_is_no_timestamp",),
    ),
    signature(
        "a doubled header is the attacker's choice",
        CHECKS,
        "signatures = parse_signatures(given[0]) if len(given) == 1 else []",
        "signatures = parse_signatures(given[0]) if given else []",
        (CASES,),
    ),
    signature(
        "nobody needs to have signed",
        CHECKS,
        'raise DeliveryError(\n                "bad_signature"',
        'DeliveryError(\n                "bad_signature"',
        (CASES,),
    ),
    signature(
        "a delivery from the future is never stale",
        CHECKS,
        "if abs(self._unix_seconds() - (parse_timestamp(timestamp) or 0)) > self._tolerance:",
        "if self._unix_seconds() - (parse_timestamp(timestamp) or 0) > self._tolerance:",
        ("tests/api/test_checks.py::test_the_window_is_closed_at_the_tolerance", CASES),
    ),
)
