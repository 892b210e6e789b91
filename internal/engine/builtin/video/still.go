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
	shape     // size after rotation to upright
	turn  int // Exif orientation from 1 to 8; 1 is upright
}

// addStill copies a picture into the job's folder and determines its size and
// orientation.
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

// orientationFilters are the filters that turn a picture upright, by Exif
// orientation. FFmpeg's own rotation is switched off, because it differs
// between versions.
var orientationFilters = [9]string{2: "hflip,", 3: "hflip,vflip,", 4: "vflip,", 5: "transpose=cclock_flip,", 6: "transpose=clock,", 7: "transpose=clock_flip,", 8: "transpose=cclock,"}

// prepareStill converts a picture to a plain PPM file, and sends a preview if
// requested. graph has the filters to apply. Their input pad [in] is the whole
// picture, upright and opaque.
func (w *jobRun) prepareStill(ctx context.Context, s engine.Span, p still, to, behind, graph string, preview bool) (inputFile, error) {
	// Transparent parts show the grey level of the variable behind: the picture
	// is drawn over a copy of itself in which all pixels have that level.
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
	if n, err := w.fileSize(ctx, plain.name); err != nil || n == 0 { // ffmpeg reports no error if a picture contains no frame
		return inputFile{}, errPicture.WithCause(err)
	}
	if preview {
		w.sendPreview("preview.jpg")
	}
	return plain, nil
}

// fitInside returns the largest size with the aspect ratio of p that fits into
// a frame.
func fitInside(p, frame shape) shape {
	scale := min(float64(frame.w)/float64(p.w), float64(frame.h)/float64(p.h))
	side := func(n, maxHeader int) int { return min(max(int(math.Round(float64(n)*scale)), 1), maxHeader) }
	return shape{side(p.w, frame.w), side(p.h, frame.h)}
}

// sharpFlags are the scaling flags for pictures that are shown without blur.
const sharpFlags = "lanczos+accurate_rnd+full_chroma_int"

// coverFilters returns the filters that make the centre of a picture fill a
// frame. They crop before scaling, because a picture one pixel high would
// otherwise be scaled to a width of a million pixels.
func coverFilters(p, frame shape, flags string) string {
	scale := max(float64(frame.w)/float64(p.w), float64(frame.h)/float64(p.h))
	side := func(n, maxHeader int) int { return min(max(int(math.Round(float64(n)/scale)), 1), maxHeader) }
	return fmt.Sprintf("crop=%d:%d,scale=%d:%d:flags=%s,setsar=1", side(frame.w, p.w), side(frame.h, p.h), frame.w, frame.h, flags)
}

// readOrientation returns the Exif orientation of a JPEG file in the job's
// folder.
func (w *jobRun) readOrientation(name string) (int, error) {
	r, err := w.folder.OpenFile(name)
	if err != nil {
		return 0, errUnavailable.WithCause(err)
	}
	defer r.Close()
	const maxHeader = 1 << 20 // colour profiles may precede the orientation
	start, err := io.ReadAll(io.LimitReader(r, maxHeader))
	if err != nil {
		return 0, errUnavailable.WithCause(err)
	}
	return int(pixels.OrientationOf(start)), nil
}
