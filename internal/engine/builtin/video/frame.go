package video

import (
	"context"
	"io"

	"atelier/internal/engine"
)

// FirstFrame returns the first frame of a video as a JPEG, at most 1280 pixels
// wide.
func (e *Engine) FirstFrame(ctx context.Context, mimeType string, r io.Reader) ([]byte, error) {
	w, err := e.newJobRun(task{}, nil)
	if err != nil {
		return nil, err
	}
	defer w.removeFolder()
	in, err := w.addInput(ctx, "video", "video", engine.File{
		MimeType: mimeType,
		Open:     func(context.Context) (io.ReadCloser, error) { return io.NopCloser(r), nil },
	})
	if err != nil {
		return nil, err
	}
	args := append(in.inputArgs(), "-filter_complex", "[0:V:0]scale='min(1280,iw*sar)':-2:flags=bicubic,setsar=1[small]",
		"-map", "[small]", "-q:v", "3", "-pix_fmt", "yuvj420p")
	if err := w.runFFmpeg(ctx, engine.Span{}, 0, errVideo, append(args, stillOutputArgs("frame.jpg", "mjpeg")...)...); err != nil {
		return nil, err
	}
	b, err := w.readFile("frame.jpg", maxFrame)
	if err != nil {
		return nil, errVideo.WithCause(err)
	}
	return b, nil
}
