"""The network: it gets a noisy picture, how noisy it is and a text, and predicts the clean picture.

128×128 pixels, patches of 8, so 256 picture tokens, and 24 word tokens before them, in one transformer with
adaLN-single, QK-norm, 2-D RoPE and SwiGLU. A small convolutional head takes away the seams between patches.
Words are frozen word vectors plus learned embeddings, through a small encoder of their own. There are no
attention masks; the empty prompt (all padding) is the unconditional branch for guidance.

Time runs from 0 (noise) to 1 (picture): z = t·x + (1−t)·noise.
"""
import json
import math
import os
import zlib

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

import shipped
from scenes import PAD, TEXT_LENGTH, UNKNOWN

CONFIG = dict(res=128, patch=8, d=384, depth=11, heads=6, hid=1024, dt=256, tdepth=3, theads=4, thid=640,
              bott=128, ch=13, cw=32, theta=100.0)


class RMSNorm(nn.Module):
    def __init__(self, d, affine=True):
        super().__init__()
        self.w = nn.Parameter(torch.ones(d)) if affine else None

    def forward(self, x):
        f = x.float()
        f = f * torch.rsqrt(f.pow(2).mean(-1, keepdim=True) + 1e-6)
        if self.w is not None:
            f = f * self.w
        return f.to(x.dtype)


if hasattr(F, 'scaled_dot_product_attention'):
    attention = F.scaled_dot_product_attention
else:
    def attention(q, k, v):
        return torch.softmax(q.float() @ k.float().transpose(-1, -2) / math.sqrt(q.shape[-1]), -1).to(v.dtype) @ v


def rotate(x, cos, sin):
    a, b = x.chunk(2, -1)
    return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)


class Attn(nn.Module):
    def __init__(self, d, heads):
        super().__init__()
        self.h = heads
        self.qkv = nn.Linear(d, 3 * d, bias=False)
        self.o = nn.Linear(d, d, bias=False)
        self.qn, self.kn = RMSNorm(d // heads), RMSNorm(d // heads)

    def forward(self, x, cos=None, sin=None):
        B, T, d = x.shape
        q, k, v = self.qkv(x).view(B, T, 3, self.h, d // self.h).permute(2, 0, 3, 1, 4)
        q, k = self.qn(q), self.kn(k)
        if cos is not None:
            q, k = rotate(q.float(), cos, sin), rotate(k.float(), cos, sin)
        y = attention(q.to(v.dtype), k.to(v.dtype), v)
        return self.o(y.transpose(1, 2).reshape(B, T, d))


class MLP(nn.Module):
    def __init__(self, d, hid):
        super().__init__()
        self.w12 = nn.Linear(d, 2 * hid, bias=False)
        self.w3 = nn.Linear(hid, d, bias=False)

    def forward(self, x):
        a, b = self.w12(x).chunk(2, -1)
        return self.w3(F.silu(a) * b)


class Block(nn.Module):
    def __init__(self, d, heads, hid):
        super().__init__()
        self.n1, self.n2 = RMSNorm(d, False), RMSNorm(d, False)
        self.att, self.mlp = Attn(d, heads), MLP(d, hid)
        self.mod = nn.Parameter(torch.zeros(6, d))

    def forward(self, x, c6, cos, sin):
        s1, b1, g1, s2, b2, g2 = (c6 + self.mod).to(x.dtype).unsqueeze(2).unbind(1)
        x = x + g1 * self.att(self.n1(x) * (1 + s1) + b1, cos, sin)
        return x + g2 * self.mlp(self.n2(x) * (1 + s2) + b2)


class TextBlock(nn.Module):
    def __init__(self, d, heads, hid):
        super().__init__()
        self.n1, self.n2 = RMSNorm(d), RMSNorm(d)
        self.att, self.mlp = Attn(d, heads), MLP(d, hid)

    def forward(self, x):
        x = x + self.att(self.n1(x))
        return x + self.mlp(self.n2(x))


class TextEncoder(nn.Module):
    def __init__(self, c, vectors):
        super().__init__()
        dt = c['dt']
        self.register_buffer('glove', vectors, persistent=False)
        self.learned = c['learned']
        self.proj = nn.Linear(100, dt)
        self.emb = nn.Embedding(c['learned'], dt)
        self.pos = nn.Parameter(torch.randn(TEXT_LENGTH, dt) * .02)
        self.blocks = nn.ModuleList([TextBlock(dt, c['theads'], c['thid']) for _ in range(c['tdepth'])])
        self.norm = RMSNorm(dt)
        self.out = nn.Linear(dt, c['d'])
        self.pool = nn.Linear(dt, c['d'])

    def forward(self, tok, drop=None):
        e = torch.where(tok < self.learned, tok, torch.full_like(tok, UNKNOWN))
        if drop is not None:  # lean on the word vector alone now and then
            e = torch.where(drop & (tok > 1), torch.full_like(tok, UNKNOWN), e)
        x = self.proj(self.glove[tok].float()) + self.emb(e) + self.pos
        for b in self.blocks:
            x = b(x)
        x = self.norm(x)
        w = (tok != PAD).float().unsqueeze(-1).to(x.dtype)
        pooled = (x * w).sum(1) / w.sum(1).clamp(min=1.)
        return self.out(x), self.pool(pooled)


class Net(nn.Module):
    def __init__(self, c, vectors):
        super().__init__()
        self.c = c
        d, P, R = c['d'], c['patch'], c['res']
        self.P, self.G, self.CH = P, R // P, c['ch']
        self.text = TextEncoder(c, vectors)
        self.pe1 = nn.Linear(3 * P * P, c['bott'], bias=False)
        self.pe2 = nn.Linear(c['bott'], d)
        self.t1, self.t2 = nn.Linear(256, d), nn.Linear(d, d)
        self.ada = nn.Linear(d, 6 * d)
        self.blocks = nn.ModuleList([Block(d, c['heads'], c['hid']) for _ in range(c['depth'])])
        self.fmod = nn.Linear(d, 2 * d)
        self.fn = RMSNorm(d, False)
        self.fo = nn.Linear(d, P * P * self.CH)
        self.c1 = nn.Conv2d(self.CH + 3, c['cw'], 3, padding=1)
        self.c2 = nn.Conv2d(c['cw'], c['cw'], 3, padding=1)
        self.c3 = nn.Conv2d(c['cw'], 3, 3, padding=1)
        hd = d // c['heads']
        freq = c['theta'] ** (-torch.arange(hd // 4).float() / (hd // 4))
        pos = torch.arange(self.G).float()
        ay = (pos[:, None] * freq)[:, None, :].expand(self.G, self.G, hd // 4)
        ax = (pos[:, None] * freq)[None, :, :].expand(self.G, self.G, hd // 4)
        angle = torch.cat([ay, ax], -1).reshape(self.G * self.G, hd // 2)
        angle = torch.cat([torch.zeros(TEXT_LENGTH, hd // 2), angle])  # words come first and are not rotated
        self.register_buffer('cos', angle.cos(), persistent=False)
        self.register_buffer('sin', angle.sin(), persistent=False)
        self.register_buffer('tf', torch.exp(-math.log(10000.) * torch.arange(128).float() / 128), persistent=False)
        for m in self.modules():
            if isinstance(m, nn.Linear):
                nn.init.xavier_uniform_(m.weight)
                if m.bias is not None:
                    nn.init.zeros_(m.bias)
        nn.init.normal_(self.text.emb.weight, std=.02)
        for layer in (self.ada, self.fmod, self.fo, self.c3):
            nn.init.zeros_(layer.weight)
        nn.init.zeros_(self.c3.bias)

    def forward(self, z, t, tok, drop=None):
        """z (B,3,R,R) noisy, t (B,), tok (B,24) -> the predicted clean picture."""
        return self.core(z, t, *self.text(tok, drop))

    def core(self, z, t, txt, pooled):
        B, P, G = z.shape[0], self.P, self.G
        x = z.view(B, 3, G, P, G, P).permute(0, 2, 4, 3, 5, 1).reshape(B, G * G, P * P * 3)
        x = self.pe2(self.pe1(x))
        a = t.float()[:, None] * 1000. * self.tf
        c = F.silu(self.t2(F.silu(self.t1(torch.cat([a.cos(), a.sin()], -1)))) + pooled)
        c6 = self.ada(c).view(B, 6, -1)
        x = torch.cat([txt.to(x.dtype), x], 1)
        for b in self.blocks:
            x = b(x, c6, self.cos, self.sin)
        x = x[:, TEXT_LENGTH:]
        s, b = self.fmod(c).to(x.dtype).unsqueeze(1).chunk(2, -1)
        y = self.fo(self.fn(x) * (1 + s) + b)
        # Pixels first, channels last: the order in which convolutions with few channels are fast.
        y = y.view(B, G, G, P, P, self.CH).permute(0, 1, 3, 2, 4, 5).reshape(B, G * P, G * P, self.CH)
        f = torch.cat([y, z.permute(0, 2, 3, 1).to(y.dtype)], -1).permute(0, 3, 1, 2)
        f = F.silu(self.c1(f))
        f = F.silu(self.c2(f))
        return y[..., :3].permute(0, 3, 1, 2).float() + self.c3(f).float()


def unit_rows(q):
    """Word vectors as rows of length 10; padding and unknown words have none."""
    q = q.astype(np.float64)
    n = np.linalg.norm(q, axis=1, keepdims=True)
    return torch.from_numpy(np.where(n > 0, q / np.maximum(n, 1e-6) * 10., 0.).astype(np.float32))


def load_glove(folder):
    return unit_rows(np.load(os.path.join(folder, 'glove_i8.npy')))


def export(weights, config, folder, **more):
    """Writes weights as float16, in files of at most 15 MiB, with an index."""
    os.makedirs(folder, exist_ok=True)
    part, tensors, data, offset = 15 * 2 ** 20, [], [], 0
    for name in sorted(weights):
        v = weights[name].detach().float().cpu().numpy().astype(np.float16)
        if not np.isfinite(v).all():
            raise ValueError(f'{name} is not finite as float16')
        b = np.ascontiguousarray(v).tobytes()
        tensors.append(dict(name=name, shape=list(v.shape), offset=offset, bytes=len(b)))
        data.append(b)
        offset += len(b)
    blob = b''.join(data)
    files = []
    for i in range(0, len(blob), part):
        files.append('weights.fp16.%02d.bin' % (i // part))
        with open(os.path.join(folder, files[-1]), 'wb') as f:
            f.write(blob[i:i + part])
    index = dict(dtype='float16-le', config=config, text_len=TEXT_LENGTH, pad=PAD, unk=UNKNOWN, files=files,
                 total_bytes=len(blob), crc32=zlib.crc32(blob) & 0xffffffff, tensors=tensors, **more)
    with open(os.path.join(folder, 'model.json'), 'w') as f:
        json.dump(index, f, indent=1)


def import_weights(folder):
    """Reads what export wrote, or what the program has. -> config, tensors by name"""
    with open(os.path.join(folder, 'model.json')) as f:
        index = json.load(f)
    if 'format' in index:
        _, found = shipped.tensors(folder)
        return index['config'], {n: torch.from_numpy(v) for n, v in found.items()}
    blob = b''
    for name in index['files']:
        with open(os.path.join(folder, name), 'rb') as f:
            blob += f.read()
    if zlib.crc32(blob) & 0xffffffff != index['crc32']:
        raise ValueError(f'the weights in {folder} are damaged')
    weights = {}
    for t in index['tensors']:
        v = np.frombuffer(blob, '<f2', int(np.prod(t['shape'])), t['offset'])
        weights[t['name']] = torch.from_numpy(v.astype(np.float32).reshape(t['shape']))
    return index['config'], weights


def as_shipped(weights):
    """Rounds weights the way they ship: int8 with a scale per row for matrices, float16 for the rest."""
    out = {}
    for name, v in weights.items():
        v = v.detach().float()
        if v.ndim >= 2 and v.numel() >= 4096:
            m = v.reshape(v.shape[0], -1)
            s = m.abs().amax(1, keepdim=True).clamp(min=1e-8) / 127
            out[name] = (torch.round(m / s).clamp(-127, 127) * s).reshape(v.shape)
        else:
            out[name] = v.half().float()
    return out
