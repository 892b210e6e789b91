package video

import (
	"context"
	"fmt"
	"io"
	"math"

	"atelier/internal/engine"
	"atelier/internal/engine/builtin/pixels"
)

// picture is a still in the folder.
type picture struct {
	input
	shape     // as people see it
	turn  int // as Exif counts, 1 upright
}

// picture puts a still into the folder and measures it.
func (w *work) picture(ctx context.Context, name string, f engine.File) (picture, error) {
	in, err := w.takes(ctx, "image", name, f)
	if err != nil {
		return picture{}, err
	}
	fact, err := w.measure(ctx, in)
	if err != nil {
		return picture{}, err
	}
	if !fact.video {
		return picture{}, errPicture
	}
	if fact.w > inputPixels/fact.h {
		return picture{}, engine.Fail(engine.Failed, fmt.Sprintf("A picture is too large: at most %d megapixels are possible.", inputPixels/1_000_000))
	}
	p := picture{in, fact.shape, 1}
	if f.MimeType == "image/jpeg" {
		if p.turn, err = w.turn(in.name); err != nil {
			return picture{}, err
		}
	}
	if p.turn >= 5 {
		p.w, p.h = p.h, p.w
	}
	return p, nil
}

// turns are the filters that set pictures upright. Versions of FFmpeg differ in
// whether they do it themselves, so they are told not to.
var turns = [9]string{2: "hflip,", 3: "hflip,vflip,", 4: "vflip,", 5: "transpose=cclock_flip,", 6: "transpose=clock,", 7: "transpose=clock_flip,", 8: "transpose=cclock,"}

// prepare makes a plain picture of the still, and a preview where it is asked
// for. The graph gets the whole picture upright and opaque, from the pad [in].
func (w *work) prepare(ctx context.Context, s engine.Span, p picture, to, behind, graph string, preview bool) (input, error) {
	// Transparent parts show what is behind: the same picture as one colour.
	chain := fmt.Sprintf("[0:v]%ssetsar=1,format=rgba,split[top][under];[under]lutrgb=r=%[2]s:g=%[2]s:b=%[2]s:a=255[flat];[flat][top]overlay=format=rgb,format=rgb24[in];%s",
		turns[p.turn], behind, graph)
	plain := input{to + ".ppm", kind{"ppm", "ppm_pipe", "ppm", errMaking}}
	args := p.args("-noautorotate")
	if preview {
		chain += ",split[main][small];[small]scale='min(512,iw)':'min(512,ih)':force_original_aspect_ratio=decrease:flags=bicubic[preview]"
		args = append(append(args, "-filter_complex", chain, "-map", "[main]"), still(plain.name, "ppm")...)
		args = append(append(args, "-map", "[preview]", "-q:v", "4", "-pix_fmt", "yuvj420p"), still("preview.jpg", "mjpeg")...)
	} else {
		args = append(append(args, "-filter_complex", chain+"[main]", "-map", "[main]"), still(plain.name, "ppm")...)
	}
	if err := w.run(ctx, s, 0, errPicture, args...); err != nil {
		return input{}, err
	}
	if n, err := w.size(ctx, plain.name); err != nil || n == 0 { // a picture without a frame is no error to it
		return input{}, errPicture.Because(err)
	}
	if preview {
		w.preview("preview.jpg")
	}
	return plain, nil
}

// inside gives the largest size of a picture that fits into a frame.
func inside(p, frame shape) shape {
	scale := min(float64(frame.w)/float64(p.w), float64(frame.h)/float64(p.h))
	side := func(n, most int) int { return min(max(int(math.Round(float64(n)*scale)), 1), most) }
	return shape{side(p.w, frame.w), side(p.h, frame.h)}
}

// sharp is how pictures are scaled that are looked at.
const sharp = "lanczos+accurate_rnd+full_chroma_int"

// cover gives the filters that make a picture fill a frame, from its middle. It
// is cut first: a strip a pixel high would be drawn a million wide.
func cover(p, frame shape, flags string) string {
	scale := max(float64(frame.w)/float64(p.w), float64(frame.h)/float64(p.h))
	side := func(n, most int) int { return min(max(int(math.Round(float64(n)/scale)), 1), most) }
	return fmt.Sprintf("crop=%d:%d,scale=%d:%d:flags=%s,setsar=1", side(frame.w, p.w), side(frame.h, p.h), frame.w, frame.h, flags)
}

// turn finds how a camera was held.
func (w *work) turn(name string) (int, error) {
	r, err := w.folder.Open(name)
	if err != nil {
		return 0, errAway.Because(err)
	}
	defer r.Close()
	const most = 1 << 20 // the profiles that may come before it
	start, err := io.ReadAll(io.LimitReader(r, most))
	if err != nil {
		return 0, errAway.Because(err)
	}
	return int(pixels.OrientationOf(start)), nil
}
