#!/usr/bin/env python3
"""Reads the weights that are in the program, so that work can go on from them (numpy only).

    shipped.py words OUT        writes their vocabulary as vocab.json and glove_i8.npy, which data/build.py wants
"""
import json
import os
import sys

import numpy as np

WEIGHTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'internal', 'engine', 'builtin', 'tiny', 'neural', 'weights')
PANEL = 32


def tensors(folder=WEIGHTS, name='model.json'):
    """The index, and the tensors as PyTorch keeps them, float32. See export.py for the format."""
    with open(os.path.join(folder, name)) as f:
        index = json.load(f)
    parts = []
    for file in index['files']:
        with open(os.path.join(folder, file['name']), 'rb') as f:
            parts.append(f.read())
    out = {}
    for t in index['tensors']:
        shape, data, at = t['shape'], parts[t['file']], t['offset']
        if t['kind'] == 'matrix':
            k, n = shape
            panels = -(-n // PANEL)
            scale = np.frombuffer(data, '<f4', panels * PANEL, at)
            q = np.frombuffer(data, np.int8, panels * PANEL * k, at + 4 * panels * PANEL).reshape(panels, k, PANEL)
            v = q.transpose(0, 2, 1).reshape(-1, k)[:n] * scale[:n, None]
        elif t['kind'] == 'rows':
            scale = np.frombuffer(data, '<f4', shape[0], at)
            v = np.frombuffer(data, np.int8, int(np.prod(shape)), at + 4 * shape[0]).reshape(shape) * scale[:, None]
        else:
            v = np.frombuffer(data, '<f2', int(np.prod(shape)), at).reshape(shape)
            if len(shape) == 4:
                v = v.transpose(3, 2, 0, 1)
        out[t['name']] = np.ascontiguousarray(v.astype(np.float32))
    return index, out


def words(folder=WEIGHTS):
    """The words in order, and the int8 rows of their vectors after two empty ones."""
    with open(os.path.join(folder, 'words.txt')) as f:
        listed = f.read().split('\n')[:-1]
    return listed, np.fromfile(os.path.join(folder, 'words.bin'), np.int8).reshape(-1, 100)


def main():
    if len(sys.argv) != 3 or sys.argv[1] != 'words':
        sys.exit(__doc__)
    out = sys.argv[2]
    os.makedirs(out, exist_ok=True)
    listed, vectors = words()
    with open(os.path.join(WEIGHTS, 'model.json')) as f:
        learned = json.load(f)['config']['learned']
    with open(os.path.join(out, 'vocab.json'), 'w') as f:
        json.dump(dict(learned=learned, words=listed), f, separators=(',', ':'))
    np.save(os.path.join(out, 'glove_i8.npy'), vectors)


if __name__ == '__main__':
    main()
