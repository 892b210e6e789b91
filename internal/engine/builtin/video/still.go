package video

import (
	"context"
	"fmt"
	"io"
	"math"

	"atelier/internal/engine"
	"atelier/internal/engine/builtin/pixels"
)

// still is a picture in the job's folder.
type still struct {
	inputFile
	shape     // upright
	turn  int // Exif orientation, 1 is upright
}

// addStill copies a picture into the folder and reads its dimensions.
func (w *jobRun) addStill(ctx context.Context, name string, f engine.File) (still, error) {
	in, err := w.addInput(ctx, "image", name, f)
	if err != nil {
		return still{}, err
	}
	fact, err := w.probeInput(ctx, in)
	if err != nil {
		return still{}, err
	}
	if !fact.video {
		return still{}, errPicture
	}
	if fact.w > inputPixels/fact.h {
		return still{}, engine.Fail(engine.Failed, fmt.Sprintf("A picture is too large. The limit is %d megapixels.", inputPixels/1_000_000))
	}
	p := still{in, fact.shape, 1}
	if f.MimeType == "image/jpeg" {
		if p.turn, err = w.readOrientation(in.name); err != nil {
			return still{}, err
		}
	}
	if p.turn >= 5 {
		p.w, p.h = p.h, p.w
	}
	return p, nil
}

// orientationFilters turn pictures upright, by Exif orientation. Versions of FFmpeg differ in
// whether they do it themselves, so that is switched off.
var orientationFilters = [9]string{2: "hflip,", 3: "hflip,vflip,", 4: "vflip,", 5: "transpose=cclock_flip,", 6: "transpose=clock,", 7: "transpose=clock_flip,", 8: "transpose=cclock,"}

// prepareStill converts a still to a plain picture, and makes a preview if requested. The graph
// gets the whole picture, upright and opaque, from the pad [in].
func (w *jobRun) prepareStill(ctx context.Context, s engine.Span, p still, to, behind, graph string, preview bool) (inputFile, error) {
	// Transparent parts show the colour behind, which is the same picture with
	// all pixels set to one level.
	chain := fmt.Sprintf("[0:v]%ssetsar=1,format=rgba,split[top][under];[under]lutrgb=r=%[2]s:g=%[2]s:b=%[2]s:a=255[flat];[flat][top]overlay=format=rgb,format=rgb24[in];%s",
		orientationFilters[p.turn], behind, graph)
	plain := inputFile{to + ".ppm", fileKind{"ppm", "ppm_pipe", "ppm", errRender}}
	args := p.inputArgs("-noautorotate")
	if preview {
		chain += ",split[main][small];[small]scale='min(512,iw)':'min(512,ih)':force_original_aspect_ratio=decrease:flags=bicubic[preview]"
		args = append(append(args, "-filter_complex", chain, "-map", "[main]"), stillOutputArgs(plain.name, "ppm")...)
		args = append(append(args, "-map", "[preview]", "-q:v", "4", "-pix_fmt", "yuvj420p"), stillOutputArgs("preview.jpg", "mjpeg")...)
	} else {
		args = append(append(args, "-filter_complex", chain+"[main]", "-map", "[main]"), stillOutputArgs(plain.name, "ppm")...)
	}
	if err := w.runFFmpeg(ctx, s, 0, errPicture, args...); err != nil {
		return inputFile{}, err
	}
	if n, err := w.fileSize(ctx, plain.name); err != nil || n == 0 { // FFmpeg reports no error for a picture without a frame
		return inputFile{}, errPicture.WithCause(err)
	}
	if preview {
		w.sendPreview("preview.jpg")
	}
	return plain, nil
}

// fitInside returns the largest size of a picture that fits into a frame.
func fitInside(p, frame shape) shape {
	scale := min(float64(frame.w)/float64(p.w), float64(frame.h)/float64(p.h))
	side := func(n, maxHeader int) int { return min(max(int(math.Round(float64(n)*scale)), 1), maxHeader) }
	return shape{side(p.w, frame.w), side(p.h, frame.h)}
}

// sharpFlags are the scaler's flags for visible pictures.
const sharpFlags = "lanczos+accurate_rnd+full_chroma_int"

// coverFilters returns the filters that make a picture fill a frame, from its centre. They crop
// before they scale, because a strip one pixel high would be scaled to a width of a million.
func coverFilters(p, frame shape, flags string) string {
	scale := max(float64(frame.w)/float64(p.w), float64(frame.h)/float64(p.h))
	side := func(n, maxHeader int) int { return min(max(int(math.Round(float64(n)/scale)), 1), maxHeader) }
	return fmt.Sprintf("crop=%d:%d,scale=%d:%d:flags=%s,setsar=1", side(frame.w, p.w), side(frame.h, p.h), frame.w, frame.h, flags)
}

// readOrientation returns the Exif orientation of a file.
func (w *jobRun) readOrientation(name string) (int, error) {
	r, err := w.folder.OpenFile(name)
	if err != nil {
		return 0, errUnavailable.WithCause(err)
	}
	defer r.Close()
	const maxHeader = 1 << 20 // profiles may come before the orientation
	start, err := io.ReadAll(io.LimitReader(r, maxHeader))
	if err != nil {
		return 0, errUnavailable.WithCause(err)
	}
	return int(pixels.OrientationOf(start)), nil
}
