#!/usr/bin/env python3
"""Write what PyTorch makes of the embedded weights, for the Go tests to compare with.

  reference.py        (reads internal/engine/builtin/tiny/neural/weights, writes .../testdata)

The weights are taken as the program has them, after export, so that only the arithmetic differs.
Run it again whenever the weights change.
"""
import os

import numpy as np
import torch

import shipped
from network import Net, unit_rows
from upscaler import Upscaler

HERE = os.path.dirname(os.path.abspath(__file__))
PACKAGE = os.path.join(HERE, '..', 'internal', 'engine', 'builtin', 'tiny', 'neural')
PROMPT = 'a red apple next to two zzzunknown cats'


def formula(n):
    """Numbers about as large as noise, that Go makes as well: a linear congruential generator."""
    state, out = 12345, np.zeros(n, np.float32)
    for i in range(n):
        state = (state * 1664525 + 1013904223) & 0xffffffff
        out[i] = np.float32(state >> 8) / np.float32(1 << 22) - np.float32(2)
    return out


def encode(words, length, prompt):
    numbers = {w: i + 2 for i, w in enumerate(words)}
    tokens = [0] * length
    for i, w in enumerate(prompt.split()):
        tokens[i] = next((numbers[c] for c in (w, w[:-1] if w.endswith('s') else w, w[:-2] if w.endswith('es') else w) if c in numbers), 1)
    return torch.tensor([tokens])


def write(name, v):
    np.ascontiguousarray(v.detach().numpy() if torch.is_tensor(v) else v).astype('<f4').tofile(os.path.join(PACKAGE, 'testdata', name))


def pictures(z):
    """(1,3,R,R) to [y][x][channel]."""
    return z[0].permute(1, 2, 0)


@torch.no_grad()
def main():
    os.makedirs(os.path.join(PACKAGE, 'testdata'), exist_ok=True)
    index, weights = shipped.tensors()
    words, rows = shipped.words()
    c = index['config']
    net = Net(c, unit_rows(rows)).eval()
    net.load_state_dict({n: torch.from_numpy(v) for n, v in weights.items()})

    tokens = encode(words, index['text_len'], PROMPT)
    rows, pooled = net.text(tokens)
    write('text.f32', torch.cat([rows[0].reshape(-1), pooled[0]]))
    side = c['res']
    z = torch.from_numpy(formula(side * side * 3)).view(1, side, side, 3).permute(0, 3, 1, 2).contiguous()
    write('core.f32', pictures(net.core(z, torch.tensor([.37]), rows, pooled)))

    steps, shift = index['sampler']['steps'], index['sampler']['shift']
    times = [u / (u + shift * (1 - u)) for u in np.linspace(0, 1, steps + 1)]
    for a0, a1 in zip(times, times[1:]):
        x = net.core(z, torch.tensor([a0], dtype=torch.float32), rows, pooled).clamp(-1.2, 1.2)
        z = z + (x - z) * ((a1 - a0) / (1 - a0))
    picture = ((z.clamp(-1, 1) + 1) * 127.5 + .5).byte()
    pictures(picture).contiguous().numpy().tofile(os.path.join(PACKAGE, 'testdata', 'picture.rgb'))

    index, up = shipped.tensors(name='upscale.json')
    x = torch.from_numpy(np.floor(((formula(40 * 28 * 3) + 2) / 4) * 255.99)).float().view(1, 28, 40, 3).permute(0, 3, 1, 2) / 255
    net = Upscaler(index['config']['channels'], index['config']['layers']).eval()
    net.load_state_dict({n + '.weight' if n.startswith('slopes') else n: torch.from_numpy(v) for n, v in up.items()})
    y = net(x)
    (pictures(y).clamp(0, 1) * 255 + .5).byte().contiguous().numpy().tofile(os.path.join(PACKAGE, 'testdata', 'upscale.rgb'))


if __name__ == '__main__':
    main()
