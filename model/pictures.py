"""Pictures for training: sprites read from disk, scenes painted on the device, sheets written as PNG."""
import io
import os
import struct
import zlib
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch
import torch.nn.functional as F


def decoder():
    """Something that makes RGBA arrays of WebP: Pillow, or torchvision where Pillow has no WebP."""
    try:
        from PIL import Image, features
        if features.check('webp'):
            return lambda b: np.asarray(Image.open(io.BytesIO(b)).convert('RGBA'))
    except ImportError:
        pass
    from torchvision.io import ImageReadMode, decode_webp
    return lambda b: decode_webp(torch.frombuffer(bytearray(b), dtype=torch.uint8),
                                 mode=ImageReadMode.RGB_ALPHA).permute(1, 2, 0).numpy()


def load_pictures(folder, blob, side):
    """All pictures of a file with its offsets -> uint8 (N,4,side,side), colours multiplied by alpha."""
    offsets = np.load(os.path.join(folder, 'offsets.npy'))
    with open(os.path.join(folder, blob), 'rb') as f:
        data = f.read()
    n = len(offsets) - 1
    out = np.zeros((n, 4, side, side), np.uint8)
    decode = decoder()

    def one(i):
        a = decode(data[offsets[i]:offsets[i + 1]]).astype(np.uint16)
        alpha = a[..., 3:4]
        out[i, :3] = ((a[..., :3] * alpha + 127) // 255).astype(np.uint8).transpose(2, 0, 1)
        out[i, 3] = alpha[..., 0].astype(np.uint8)

    with ThreadPoolExecutor(max(2, os.cpu_count() or 2)) as pool:
        list(pool.map(one, range(n), chunksize=64))
    return torch.from_numpy(out)


def load_sprites(folder):
    return load_pictures(folder, 'sprites.bin', 128)


@torch.no_grad()
def compose(scenes, sprites, device):
    """Paints a batch of scenes (scenes.Scenes.batch as tensors) -> float (B,3,128,128) from -1 to 1."""
    counts = scenes['count']
    B, H, W = counts.shape[0], 128, 128
    g = {k: v.to(device, non_blocking=True) for k, v in scenes.items() if k not in ('count', 'tokens', 'labels')}
    yy = ((torch.arange(H, device=device, dtype=torch.float32) + .5) / H).view(1, 1, H, 1)
    xx = ((torch.arange(W, device=device, dtype=torch.float32) + .5) / W).view(1, 1, 1, W)
    p = g['shape'].view(B, 5, 1, 1, 1)
    horizon = p[:, 0] + p[:, 1] * torch.sin(6.2832 * p[:, 2] * xx + p[:, 3])
    flat = (p[:, 0] >= 1.).float()
    horizon = torch.where(p[:, 0] >= 1., torch.ones_like(horizon), horizon.clamp(.05, .98))
    colour = [g['ground'][:, i].view(B, 3, 1, 1) for i in range(4)]
    sky = colour[0] + (colour[1] - colour[0]) * (yy / horizon).clamp(0, 1)
    ground = colour[2] + (colour[3] - colour[2]) * ((yy - horizon) / (1.001 - horizon)).clamp(0, 1)
    below = ((yy - horizon) * H + .5).clamp(0, 1) * (1 - flat)
    d = g['disc'].view(B, 7, 1, 1)
    distance = torch.sqrt((xx * W - d[:, 0:1]) ** 2 + (yy * H - d[:, 1:2]) ** 2)
    disc = (d[:, 2:3] - distance + .5).clamp(0, 1) * d[:, 6:7]
    sky = sky * (1 - disc) + d[:, 3:6] * disc
    if bool((scenes['shape'][:, 4] > 0).any()):
        stars = (torch.rand(B, 1, H, W, device=device) > .994).float() * p[:, 4]
        sky = sky + (1 - sky) * stars * torch.rand(B, 1, H, W, device=device).clamp(.4, 1)
    image = sky * (1 - below) + ground * below
    for s in range(int(counts.max())):
        chosen = torch.nonzero(counts > s)[:, 0]
        every = len(chosen) == B
        on = chosen.to(device, non_blocking=True)
        part = (lambda v: v[:, s]) if every else (lambda v: v[on, s])
        place, tint, k = part(g['place']), part(g['tint']), len(chosen)
        sprite = sprites[part(g['sprite'])].float() / 255.
        move = torch.zeros(k, 2, 3, device=device)
        move[:, 0, 0] = place[:, 3] / place[:, 0]
        move[:, 0, 2] = -place[:, 1] * place[:, 3] / place[:, 0]
        move[:, 1, 1] = 1 / place[:, 0]
        move[:, 1, 2] = -place[:, 2] / place[:, 0]
        sprite = F.grid_sample(sprite, F.affine_grid(move, (k, 4, H, W), align_corners=False),
                               mode='bilinear', padding_mode='zeros', align_corners=False)
        rgb, alpha = sprite[:, :3], sprite[:, 3:]
        if bool((scenes['tint'][:, s, 3] > 0).any()):
            plain = rgb / alpha.clamp(min=1e-3)
            light = (plain * torch.tensor([.299, .587, .114], device=device).view(1, 3, 1, 1)).sum(1, keepdim=True).clamp(0, 1)
            tone = tint[:, :3].view(k, 3, 1, 1)
            toned = torch.where(light < .5, tone * (light * 2), tone + (1 - tone) * (light * 2 - 1)) * .85 + tone * .15
            share = tint[:, 3].view(k, 1, 1, 1)
            rgb = rgb * (1 - share) + toned * alpha * share
        under = image if every else image[on]
        painted = rgb + under * (1 - alpha)
        image = painted if every else image.index_copy(0, on, painted)
    return (image * 2 - 1).clamp(-1, 1)


def as_bytes(x):
    """(B,3,H,W) from -1 to 1 -> uint8 (B,H,W,3)"""
    return ((x.clamp(-1, 1) + 1) * 127.5 + .5).byte().permute(0, 2, 3, 1).cpu().numpy()


def grid(pictures, columns=8):
    n, h, w, _ = pictures.shape
    rows = (n + columns - 1) // columns
    sheet = np.full((rows * h, columns * w, 3), 255, np.uint8)
    for i in range(n):
        sheet[i // columns * h:(i // columns + 1) * h, i % columns * w:(i % columns + 1) * w] = pictures[i]
    return sheet


def write_png(path, a):
    h, w, _ = a.shape
    raw = b''.join(b'\0' + a[i].tobytes() for i in range(h))

    def chunk(kind, data):
        return struct.pack('>I', len(data)) + kind + data + struct.pack('>I', zlib.crc32(kind + data) & 0xffffffff)
    with open(path, 'wb') as f:
        f.write(b'\x89PNG\r\n\x1a\n' + chunk(b'IHDR', struct.pack('>IIBBBBB', w, h, 8, 2, 0, 0, 0)) +
                chunk(b'IDAT', zlib.compress(raw, 6)) + chunk(b'IEND', b''))
