"""The data and the model: softmax regression on 8×8 images."""

import csv
import math
import pathlib
import random

PIXELS, CLASSES = 64, 10
SIZE = CLASSES * (PIXELS + 1)


def load():
    """Returns (training, test): lists of (pixels, digit). The split is the same in each process."""
    path = pathlib.Path(__file__).parent / "data" / "digits.csv"
    with path.open(newline="") as lines:
        rows = [[int(field) for field in row] for row in csv.reader(lines)]
    images = [([pixel / 16 for pixel in row[:PIXELS]] + [1.0], row[PIXELS]) for row in rows]
    random.Random(1998).shuffle(images)
    cut = len(images) * 4 // 5
    return images[:cut], images[cut:]


def probabilities(weights, pixels):
    """The probability of each digit. `weights` has 65 values per digit: pixels, then bias."""
    row_length = PIXELS + 1
    scores = [
        sum(map(float.__mul__, weights[start : start + row_length], pixels))
        for start in range(0, SIZE, row_length)
    ]
    top = max(scores)
    exponentials = [math.exp(score - top) for score in scores]
    total = sum(exponentials)
    return [exponential / total for exponential in exponentials]


def gradient(weights, batch):
    """The mean gradient of the cross-entropy over a batch."""
    rows = [[0.0] * (PIXELS + 1) for _ in range(CLASSES)]
    for pixels, digit in batch:
        for row, probability in enumerate(probabilities(weights, pixels)):
            error = (probability - (row == digit)) / len(batch)
            rows[row] = [old + error * pixel for old, pixel in zip(rows[row], pixels)]
    return [value for row in rows for value in row]


def accuracy(weights, images):
    """The fraction of images for which the most likely digit is correct."""
    correct = 0
    for pixels, digit in images:
        predicted = probabilities(weights, pixels)
        correct += predicted.index(max(predicted)) == digit
    return correct / len(images)
