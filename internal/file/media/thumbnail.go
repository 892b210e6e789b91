package media

import (
	"image"
	"image/draw"

	xdraw "golang.org/x/image/draw"
)

// tileBytes is the approximate size in bytes of the part of a picture that is
// averaged at once.
const tileBytes = 256 << 10

// fitSize returns the width and height of a picture scaled down to fit into a
// square with the given side. It never scales up.
func fitSize(width, height, side int) (int, int) {
	switch {
	case width <= side && height <= side:
		return width, height
	case width >= height:
		return side, max(1, int(int64(height)*int64(side)/int64(width)))
	}
	return max(1, int(int64(width)*int64(side)/int64(height))), side
}

// shrinkMemory returns the number of bytes of memory that shrinkPicture needs
// in addition to the picture.
func shrinkMemory(canvas image.Rectangle, side int) int64 {
	w, h := fitSize(canvas.Dx(), canvas.Dy(), side)
	// The memory for the averaged picture (up to twice the size in each
	// direction), the filter's intermediate rows (four floats per pixel), and
	// the result.
	return int64(w) * int64(h) * (4*4 + 2*4*8 + 4)
}

// shrinkPicture scales a picture down to fit into a square with the given side.
// canvas is the area to scale, which may exceed the picture. It averages blocks
// of pixels first, which reads each pixel once and needs little memory; a
// better filter then scales the resulting small picture.
func shrinkPicture(img image.Image, canvas image.Rectangle, side int) *image.RGBA {
	w, h := fitSize(canvas.Dx(), canvas.Dy(), side)
	small := averagePixels(img, canvas, canvas.Dx()/w, canvas.Dy()/h)
	if small.Bounds().Dx() == w && small.Bounds().Dy() == h {
		return small
	}

	out := image.NewRGBA(image.Rect(0, 0, w, h))
	xdraw.CatmullRom.Scale(out, out.Bounds(), small, small.Bounds(), xdraw.Src, nil)
	return out
}

// averagePixels scales a picture down by averaging blocks that are across
// pixels wide and down pixels high. Parts of the canvas outside the picture are
// transparent.
func averagePixels(img image.Image, canvas image.Rectangle, across, down int) *image.RGBA {
	width := canvas.Dx()
	height := canvas.Dy()
	out := image.NewRGBA(image.Rect(0, 0, (width+across-1)/across, (height+down-1)/down))
	many := max(1, tileBytes/4/across/down) // number of result pixels per tile
	tile := image.NewRGBA(image.Rect(0, 0, min(many*across, width), min(down, height)))
	for y := range out.Rect.Dy() {
		rows := min(down, height-y*down)
		for x := 0; x < out.Rect.Dx(); x += many {
			part := image.Rect(0, 0, min(many*across, width-x*across), rows)
			clear(tile.Pix)
			draw.Draw(tile, part, img, canvas.Min.Add(image.Pt(x*across, y*down)), draw.Src)
			for i := range min(many, out.Rect.Dx()-x) {
				columns := min(across, part.Dx()-i*across)
				var r, g, b, a uint64
				for row := range rows {
					at := tile.PixOffset(i*across, row)
					for pix := tile.Pix[at : at+4*columns]; len(pix) >= 4; pix = pix[4:] {
						r = r + uint64(pix[0])
						g = g + uint64(pix[1])
						b = b + uint64(pix[2])
						a = a + uint64(pix[3])
					}
				}

				n := uint64(rows) * uint64(columns)
				to := out.PixOffset(x+i, y)
				for c, sum := range [4]uint64{r, g, b, a} {
					out.Pix[to+c] = uint8((sum + n/2) / n)
				}
			}
		}
	}
	return out
}

// applyOrientation rotates and mirrors a picture according to its Exif
// orientation.
func applyOrientation(img *image.RGBA, turn int) *image.RGBA {
	if turn < 2 || turn > 8 {
		return img
	}

	w := img.Rect.Dx()
	h := img.Rect.Dy()
	out := image.NewRGBA(image.Rect(0, 0, w, h))
	if turn >= 5 {
		out = image.NewRGBA(image.Rect(0, 0, h, w))
	}

	for y := range h {
		for x := range w {
			to := image.Point{}
			switch turn {
			case 2:
				to = image.Pt(w-1-x, y)
			case 3:
				to = image.Pt(w-1-x, h-1-y)
			case 4:
				to = image.Pt(x, h-1-y)
			case 5:
				to = image.Pt(y, x)
			case 6:
				to = image.Pt(h-1-y, x)
			case 7:
				to = image.Pt(h-1-y, w-1-x)
			case 8:
				to = image.Pt(y, w-1-x)
			}
			copy(out.Pix[out.PixOffset(to.X, to.Y):][:4], img.Pix[img.PixOffset(x, y):])
		}
	}
	return out
}
