package pixels

import (
	"encoding/binary"
	"image"
)

// Orientation is the orientation of a camera picture, as an Exif value from 1
// to 8.
type Orientation int

const upright Orientation = 1

// OrientationOf returns the orientation stored in the first segments of a JPEG
// file. If the data is invalid, it returns upright, because a rotated picture
// is better than none.
func OrientationOf(jpeg []byte) Orientation {
	for b := jpeg[min(2, len(jpeg)):]; len(b) >= 4 && b[0] == 0xff; {
		marker := b[1]
		length := int(binary.BigEndian.Uint16(b[2:]))
		if marker == 0xda || length < 2 || len(b) < 2+length {
			break
		}
		if body := b[4 : 2+length]; marker == 0xe1 && len(body) > 6 && string(body[:6]) == "Exif\x00\x00" {
			return exifOrientation(body[6:])
		}
		b = b[2+length:]
	}
	return upright
}

// exifOrientation returns the value of tag 0x0112 in the first directory of a
// TIFF structure.
func exifOrientation(b []byte) Orientation {
	if len(b) < 8 {
		return upright
	}
	var order binary.ByteOrder = binary.BigEndian
	if string(b[:2]) == "II" {
		order = binary.LittleEndian
	}
	at := uint64(order.Uint32(b[4:]))
	if at+2 > uint64(len(b)) {
		return upright
	}
	entries := b[at+2:]
	for range order.Uint16(b[at:]) {
		if len(entries) < 12 {
			break
		}
		if order.Uint16(entries) == 0x0112 {
			if o := Orientation(order.Uint16(entries[8:])); o >= 1 && o <= 8 {
				return o
			}
			break
		}
		entries = entries[12:]
	}
	return upright
}

// swapsSides reports whether turning the picture upright exchanges its width
// and height.
func (o Orientation) swapsSides() bool { return o >= 5 }

// turnUpright returns the picture rotated and mirrored so that it is upright.
func (o Orientation) turnUpright(src *image.NRGBA) *image.NRGBA {
	if o == upright {
		return src
	}
	w := src.Rect.Dx()
	h := src.Rect.Dy()
	// Compute the position in the result of the pixel at (0,0), and the
	// distances in the result between neighbours in a row and in a column.
	dw := w
	dh := h
	if o.swapsSides() {
		dw = h
		dh = w
	}
	dst := image.NewNRGBA(image.Rect(0, 0, dw, dh))
	right := 4
	down := dst.Stride
	lastX := 4 * (dw - 1)
	lastY := dst.Stride * (dh - 1)
	var start, alongX, alongY int
	switch o {
	case 2:
		start = lastX
		alongX = -right
		alongY = down
	case 3:
		start = lastX + lastY
		alongX = -right
		alongY = -down
	case 4:
		start = lastY
		alongX = right
		alongY = -down
	case 5:
		start = 0
		alongX = down
		alongY = right
	case 6:
		start = lastX
		alongX = down
		alongY = -right
	case 7:
		start = lastX + lastY
		alongX = -down
		alongY = -right
	case 8:
		start = lastY
		alongX = -down
		alongY = right
	case upright:
		alongX = right
		alongY = down
	}
	for y := range h {
		from := src.Pix[y*src.Stride:]
		to := start + y*alongY
		for x := range w {
			copy(dst.Pix[to:to+4], from[4*x:4*x+4])
			to += alongX
		}
	}
	return dst
}
