import torch

from regard.studies.reproduce.applications.few_labels import LinearClassifier, draw_per_label


def test_separated_groups_are_classified():
    centres = torch.tensor([[0.0, 0.0], [4.0, 0.0], [0.0, 4.0]])
    labels = torch.arange(3).repeat_interleave(20)
    noise = torch.randn(60, 2, generator=torch.Generator().manual_seed(1))
    features = centres[labels] + 0.3 * noise
    classifier = LinearClassifier.fit(features[::4], labels[::4])
    assert (classifier.predict(features) == labels).all()


def test_scale_of_features_does_not_matter():
    labels = torch.arange(2).repeat(10)
    features = torch.randn(20, 3, generator=torch.Generator().manual_seed(2))
    features[:, 0] += 3 * labels
    scales = torch.tensor([1.0, 100.0, 0.01])
    one, other = (LinearClassifier.fit(each, labels) for each in (features, features * scales))
    assert (one.predict(features) == other.predict(features * scales)).all()


def test_same_number_of_each_label_is_drawn():
    labels = torch.tensor([0, 0, 0, 0, 0, 1, 1, 1, 2, 2])
    rows = draw_per_label(labels, 2, torch.Generator().manual_seed(3))
    assert labels[rows].tolist() == [0, 0, 1, 1, 2, 2]
    assert len(set(rows.tolist())) == 6
