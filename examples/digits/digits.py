"""The data and the model: softmax regression on 8×8 images."""

import csv
import math
import pathlib
import random

PIXELS, CLASSES = 64, 10
SIZE = CLASSES * (PIXELS + 1)


def load():
    """(training, test): lists of (pixels, digit), split the same way everywhere."""
    path = pathlib.Path(__file__).parent / "data" / "digits.csv"
    with path.open(newline="") as lines:
        rows = [[int(field) for field in row] for row in csv.reader(lines)]
    images = [([pixel / 16 for pixel in row[:PIXELS]] + [1.0], row[PIXELS]) for row in rows]
    random.Random(1998).shuffle(images)
    cut = len(images) * 4 // 5
    return images[:cut], images[cut:]


def probabilities(weights, pixels):
    """How likely each digit is. `weights` holds a row of 65 a digit: pixels, bias."""
    step = PIXELS + 1
    scores = [
        sum(map(float.__mul__, weights[row : row + step], pixels)) for row in range(0, SIZE, step)
    ]
    top = max(scores)
    powers = [math.exp(score - top) for score in scores]
    total = sum(powers)
    return [power / total for power in powers]


def gradient(weights, batch):
    """The mean gradient of the cross-entropy over a batch."""
    rows = [[0.0] * (PIXELS + 1) for _ in range(CLASSES)]
    for pixels, digit in batch:
        for row, chance in enumerate(probabilities(weights, pixels)):
            error = (chance - (row == digit)) / len(batch)
            rows[row] = [old + error * pixel for old, pixel in zip(rows[row], pixels)]
    return [value for row in rows for value in row]


def accuracy(weights, images):
    """The share of images whose most likely digit is right."""
    right = 0
    for pixels, digit in images:
        chances = probabilities(weights, pixels)
        right += chances.index(max(chances)) == digit
    return right / len(images)
