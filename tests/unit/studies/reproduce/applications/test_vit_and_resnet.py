from regard.studies.reproduce.applications.vit_and_resnet import SIZES, find_claims


def accuracies(resnet, vit):
    return {
        "ResNet": dict(zip(SIZES, resnet, strict=True)),
        "ViT": dict(zip(SIZES, vit, strict=True)),
    }


def test_claims_hold_if_the_residual_network_is_always_ahead():
    claims = find_claims(accuracies((50, 70, 90), (30, 40, 60)))
    assert [claim.holds for claim in claims] == [True, True]


def test_claims_fail_if_the_vision_transformer_is_once_ahead():
    claims = find_claims(accuracies((50, 70, 90), (30, 40, 95)))
    assert [claim.holds for claim in claims] == [True, False]


def test_claim_of_more_images_needs_a_gain_of_both():
    gain, _ = find_claims(accuracies((50, 70, 90), (30, 31, 32)))
    assert not gain.holds
    assert "ViT 30.0 to 32.0 %" in gain.outcome
