#!/usr/bin/env python3
"""Trains the upscaler: a small convolutional network that makes drawn pictures four times as wide and high.

    upscaler.py train DATA OUT --minutes 2      writes upscale.npz
    upscaler.py score DATA OUT                  against bicubic and Lanczos, on pictures kept from training

DATA is what data/build.py made at 512 pixels, of vector drawings. They are laid on plain colours, cut, and shrunk
by the means that programs have; a third is blurred or noisy besides, as what a model draws is. One name in ten is
kept from training, in all sets.
"""
import argparse
import gzip
import json
import os
import time

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

from pictures import load_pictures

CHANNELS, LAYERS = 64, 8


class Upscaler(nn.Module):
    def __init__(self, channels=CHANNELS, layers=LAYERS):
        super().__init__()
        widths = [3] + [channels] * (layers + 1) + [48]
        self.convs = nn.ModuleList([nn.Conv2d(i, o, 3, padding=1) for i, o in zip(widths, widths[1:])])
        self.slopes = nn.ModuleList([nn.PReLU(channels) for _ in range(layers + 1)])

    def forward(self, x):
        """x (B,3,H,W) from 0 to 1 -> (B,3,4H,4W)"""
        y = x
        for conv, slope in zip(self.convs, self.slopes):
            y = slope(conv(y))
        return F.pixel_shuffle(self.convs[-1](y), 4).float() + F.interpolate(x.float(), scale_factor=4, mode='nearest')


def load(data):
    with gzip.open(os.path.join(data, 'meta.jsonl.gz'), 'rt') as f:
        meta = [json.loads(line) for line in f]
    pictures = load_pictures(data, 'pictures.bin', 512)
    is_held = torch.tensor([bool(m['held']) for m in meta])
    return pictures[~is_held], pictures[is_held]


def shrink(x, how):
    if how == 'area':
        return F.avg_pool2d(x, 4)
    return F.interpolate(x, scale_factor=.25, mode=how, align_corners=False, antialias=True).clamp(0, 1)


def crops(pictures, n, side, device):
    """n random cuts on plain colours, most of them white -> (n,3,side,side) from 0 to 1"""
    i = torch.randint(0, len(pictures), (n,), device=device)
    y, x = torch.randint(0, (512 - side) // 4 + 1, (2, n), device=device) * 4
    rows = (y[:, None] + torch.arange(side, device=device))[:, None, :, None]
    cols = (x[:, None] + torch.arange(side, device=device))[:, None, None, :]
    cut = pictures[i[:, None, None, None], torch.arange(4, device=device)[None, :, None, None], rows, cols].float() / 255
    ground = torch.where(torch.rand(n, 1, 1, 1, device=device) < .5, torch.ones(n, 3, 1, 1, device=device), torch.rand(n, 3, 1, 1, device=device))
    cut = cut[:, :3] + ground * (1 - cut[:, 3:])
    turns = torch.rand(3, n, 1, 1, 1, device=device) < .5
    cut = torch.where(turns[0], cut.flip(2), cut)
    cut = torch.where(turns[1], cut.flip(3), cut)
    return torch.where(turns[2], cut.transpose(2, 3), cut)


def spoil(x, device):
    """Blur and noise on a third of the small pictures."""
    n = len(x)
    blurred = F.avg_pool2d(F.pad(x, (1, 1, 1, 1), mode='replicate'), 3, stride=1)
    share = torch.rand(n, 1, 1, 1, device=device) * .7 * (torch.rand(n, 1, 1, 1, device=device) < .33)
    x = x + (blurred - x) * share
    noise = torch.rand(n, 1, 1, 1, device=device) * .025 * (torch.rand(n, 1, 1, 1, device=device) < .33)
    return (x + torch.randn_like(x) * noise).clamp(0, 1)


def train(a):
    began = time.time()
    cuda = torch.cuda.is_available()
    device = torch.device('cuda' if cuda else 'cpu')
    seen, _ = load(a.data)
    seen = seen.to(device)
    net = Upscaler().to(device)
    if cuda:
        net = net.to(memory_format=torch.channels_last)
    forward = torch.compile(net, dynamic=False) if cuda else net
    optimiser = torch.optim.Adam(net.parameters(), lr=1e-3, betas=(.9, .99))
    mean = {k: v.detach().clone() for k, v in net.state_dict().items()}
    print('%d pictures, %d parameters' % (len(seen), sum(p.numel() for p in net.parameters())), flush=True)
    step, total, deadline = 0, 0., began + a.minutes * 60
    while time.time() < deadline and not (a.steps_only and step >= a.steps_only):
        large = crops(seen, a.batch, 192, device)
        third = a.batch // 4
        small = torch.cat([shrink(large[:2 * third], 'area'), shrink(large[2 * third:3 * third], 'bicubic'), shrink(large[3 * third:], 'bilinear')])
        small = spoil(torch.round(small * 255) / 255, device)
        with torch.autocast(device_type=device.type, dtype=torch.bfloat16, enabled=cuda):
            y = forward(small)
        loss = torch.sqrt((y - large) ** 2 + 1e-6).mean()
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), .5)
        left = max(0., (deadline - time.time()) / (deadline - began))
        for g in optimiser.param_groups:
            g['lr'] = 1e-3 * min(1., (step + 1) / 200) * max(.01, left)
        optimiser.step()
        step += 1
        keep = min(.999, (1 + step) / (10 + step))
        with torch.no_grad():
            for k, v in net.state_dict().items():
                mean[k].mul_(keep).add_(v, alpha=1 - keep)
        total += loss.detach()
        if step % 500 == 0:
            print('[%5.1fs] upscaler step %d loss %.5f' % (time.time() - began, step, float(total) / 500), flush=True)
            total = 0.
    os.makedirs(a.out, exist_ok=True)
    np.savez(os.path.join(a.out, 'upscale.npz'), **{k: v.cpu().numpy().astype(np.float16) for k, v in mean.items()})
    print('%d steps' % step, flush=True)
    score(a)


def ssim(x, y):
    """On luma, with the usual window of 11 pixels."""
    g = torch.exp(-((torch.arange(11.) - 5) ** 2) / (2 * 1.5 ** 2))
    g = (g / g.sum()).to(x.device)
    window = (g[:, None] * g[None, :])[None, None]
    luma = lambda v: (v * torch.tensor([.299, .587, .114], device=v.device).view(1, 3, 1, 1)).sum(1, keepdim=True)
    x, y = luma(x), luma(y)
    blur = lambda v: F.conv2d(v, window)
    mx, my = blur(x), blur(y)
    sx, sy, sxy = blur(x * x) - mx * mx, blur(y * y) - my * my, blur(x * y) - mx * my
    return (((2 * mx * my + 1e-4) * (2 * sxy + 9e-4)) / ((mx * mx + my * my + 1e-4) * (sx + sy + 9e-4))).mean((1, 2, 3))


def lanczos(x):
    from PIL import Image
    a = (x.permute(0, 2, 3, 1).cpu().numpy() * 255 + .5).astype(np.uint8)
    out = [np.asarray(Image.fromarray(p).resize((p.shape[1] * 4, p.shape[0] * 4), Image.LANCZOS)) for p in a]
    return torch.from_numpy(np.stack(out)).permute(0, 3, 1, 2).float().to(x.device) / 255


@torch.no_grad()
def score(a):
    device = torch.device('cuda' if torch.cuda.is_available() else 'cpu')
    _, unseen = load(a.data)
    net = Upscaler().to(device).eval()
    with np.load(os.path.join(a.out, 'upscale.npz')) as f:
        net.load_state_dict({k: torch.from_numpy(f[k].astype(np.float32)) for k in f.files})
    ways = {'bicubic': lambda s: F.interpolate(s, scale_factor=4, mode='bicubic', align_corners=False), 'lanczos': lanczos, 'network': net}
    for how in ('area', 'bicubic'):
        sums = {k: [0., 0.] for k in ways}
        n = 0
        for i in range(0, min(len(unseen), a.only or len(unseen)), 16):
            p = unseen[i:i + 16].to(device).float() / 255
            large = p[:, :3] + 1 - p[:, 3:]
            small = torch.round(shrink(large, how) * 255) / 255
            n += len(p)
            for k, way in ways.items():
                y = torch.round(way(small).clamp(0, 1) * 255) / 255
                error = ((y - large) ** 2).mean((1, 2, 3)).clamp(min=1e-8)
                sums[k][0] += float((-10 * torch.log10(error)).sum())
                sums[k][1] += float(ssim(y, large).sum())
        for k, (psnr, s) in sums.items():
            print('shrunk by %-8s %-8s PSNR %.2f dB, SSIM %.4f (mean of %d kept pictures)' % (how, k, psnr / n, s / n, n), flush=True)


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument('command', choices=['train', 'score'])
    ap.add_argument('data')
    ap.add_argument('out')
    ap.add_argument('--minutes', type=float, default=2.)
    ap.add_argument('--batch', type=int, default=64)
    ap.add_argument('--only', type=int, default=0, help='so many pictures, for tests')
    ap.add_argument('--steps-only', type=int, default=0, help='stop after so many steps, for tests')
    a = ap.parse_args()
    dict(train=train, score=score)[a.command](a)


if __name__ == '__main__':
    main()
