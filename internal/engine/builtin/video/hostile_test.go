package video_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"atelier/internal/engine"
	"atelier/internal/engine/enginetest"
)

// listener counts who calls.
func listener(t *testing.T) (address string, calls *atomic.Int64) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	calls = &atomic.Int64{}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			calls.Add(1)
			c.Close()
		}
	}()
	t.Cleanup(func() { l.Close(); <-done })
	return l.Addr().String(), calls
}

// corpus are files that have other files or addresses read, by name.
func corpus(address, canary string) map[string]string {
	return map[string]string{
		"playlist":             "#EXTM3U\n#EXT-X-MEDIA-SEQUENCE:0\n#EXTINF:1.0,\nhttp://" + address + "/a.ts\n#EXT-X-ENDLIST\n",
		"playlist of a file":   "#EXTM3U\n#EXT-X-MEDIA-SEQUENCE:0\n#EXTINF:1.0,\nfile://" + canary + "\n#EXT-X-ENDLIST\n",
		"playlist with concat": "#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1.0,\nconcat:http://" + address + "/a|file://" + canary + "\n#EXT-X-ENDLIST\n",
		"ffconcat":             "ffconcat version 1.0\nfile '" + canary + "'\nfile 'http://" + address + "/b.mp4'\n",
		"MVG":                  "push graphic-context\nviewbox 0 0 64 64\nfill 'url(http://" + address + "/c.png)'\nimage over 0,0 64,64 '" + canary + "'\npop graphic-context\n",
		"SVG":                  `<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" width="64" height="64"><image xlink:href="file://` + canary + `" width="64" height="64"/><image xlink:href="http://` + address + `/d.png" width="9" height="9"/></svg>`,
		"DASH":                 `<?xml version="1.0"?><MPD xmlns="urn:mpeg:dash:schema:mpd:2011" type="static" mediaPresentationDuration="PT1S"><Period><AdaptationSet><Representation id="1" bandwidth="1" mimeType="video/mp4" width="64" height="64"><BaseURL>http://` + address + `/e.mp4</BaseURL></Representation></AdaptationSet></Period></MPD>`,
		"SDP":                  "v=0\no=- 0 0 IN IP4 127.0.0.1\ns=x\nc=IN IP4 127.0.0.1\nt=0 0\nm=video " + address[strings.LastIndex(address, ":")+1:] + " RTP/AVP 96\n",
		"PostScript":           "%!PS\n(" + canary + ") (r) file 100 string readstring pop show showpage\n",
		"a name":               "concat:" + canary + "|http://" + address + "/f",
		"AVI subtitles":        "RIFF\x00\x00\x00\x00AVI LIST\x00\x00\x00\x00" + "#EXTM3U\n#EXTINF:1,\nhttp://" + address + "/g.ts\n",
	}
}

// TestFilesThatNameOtherFiles gives each file of the corpus to each input of
// each operation, as every type that the input takes.
func TestFilesThatNameOtherFiles(t *testing.T) {
	t.Parallel()
	programs(t)
	address, calls := listener(t)
	canary := filepath.Join(t.TempDir(), "canary.mp4")
	if err := os.WriteFile(canary, bytesOf(t, clip(t)), 0o600); err != nil {
		t.Fatal(err)
	}
	inputs := []struct {
		operation, key string
		types          []string
	}{
		{"pan-zoom", "pictures", []string{"image/jpeg", "image/png", "image/webp", "image/gif"}},
		{"video-to-gif", "video", []string{"video/mp4", "video/quicktime", "video/webm"}},
		{"waveform", "audio", []string{"audio/mpeg", "audio/wav", "audio/flac", "audio/ogg"}},
	}
	for name, text := range corpus(address, canary) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, in := range inputs {
				for _, mimeType := range in.types {
					j := cases(t)[in.operation]
					j.Files = map[string][]engine.File{in.key: {enginetest.FileFromBytes(mimeType, []byte(text))}}
					var r enginetest.Recorder
					err := newEngine(t).Run(t.Context(), j, &r)
					e := engine.AsError(err)
					if err == nil || len(r.Outputs())+len(r.Previews()) != 0 {
						t.Errorf("%s: run = %v, %d results, %d previews", mimeType, err, len(r.Outputs()), len(r.Previews()))
					}
					if strings.Contains(e.Message, address) || strings.Contains(e.Message, canary) {
						t.Errorf("%s: message = %q", mimeType, e.Message)
					}
					if n := calls.Load(); n != 0 {
						t.Fatalf("%s: %d calls", mimeType, n)
					}
				}
			}
		})
	}
}

// TestSamplesInAnotherFile has a video whose track says that its samples lie in
// another file.
func TestSamplesInAnotherFile(t *testing.T) {
	t.Parallel()
	ffmpeg, _ := programs(t)
	dir := t.TempDir()
	whole := made(t, "mov", "-f", "lavfi", "-i", "color=c=red:s=64x64:r=5:d=1", "-c:v", "mjpeg", "-pix_fmt", "yuvj420p")
	canary := filepath.Join(dir, "canary.mov")
	// The hostile file has the same boxes, but no picture in its own samples.
	hostile := outside(t, whole, canary)
	mdat := bytes.Index(hostile, []byte("mdat")) + 4
	clear(hostile[mdat : mdat+int(binary.BigEndian.Uint32(hostile[mdat-8:]))-8])
	if err := os.WriteFile(canary, whole, 0o600); err != nil {
		t.Fatal(err)
	}

	// First the proof that the file is dangerous to those who do not take care.
	trap := filepath.Join(dir, "trap.mov")
	if err := os.WriteFile(trap, hostile, 0o600); err != nil {
		t.Fatal(err)
	}
	careless := exec.CommandContext(t.Context(), ffmpeg, "-nostdin", "-v", "error", "-y", "-enable_drefs", "1", "-use_absolute_path", "1", "-i", trap, "-frames:v", "1", filepath.Join(dir, "shown.png"))
	if text, err := careless.CombinedOutput(); err != nil {
		t.Fatalf("the trap does not work: %v\n%s", err, text)
	}

	for _, mimeType := range []string{"video/quicktime", "video/mp4"} {
		for _, operation := range []string{"video-to-gif", "smooth-motion"} {
			var r enginetest.Recorder
			err := newEngine(t).Run(t.Context(), job(operation, values{"method": "blend"}, videoInput(enginetest.FileFromBytes(mimeType, hostile))), &r)
			if err == nil || len(r.Outputs())+len(r.Previews()) != 0 {
				t.Errorf("%s: run = %v, %d results, %d previews", operation, err, len(r.Outputs()), len(r.Previews()))
			}
		}
	}
}

// outside replaces the place of a track's samples with a file's path, as an
// alias record.
func outside(t *testing.T, b []byte, path string) []byte {
	t.Helper()
	text := []byte(path)
	if len(text)%2 == 1 {
		text = append(text, 0)
	}
	var alias bytes.Buffer
	alias.Write(make([]byte, 10))
	alias.Write(append([]byte{4}, append([]byte("disk"), make([]byte, 23)...)...))
	alias.Write(make([]byte, 12))
	base := filepath.Base(path)
	alias.WriteByte(byte(len(base)))
	alias.WriteString(base + strings.Repeat("\x00", 63-len(base)))
	alias.Write(make([]byte, 16))
	alias.Write([]byte{0, 1, 0, 1}) // levels from here and to there
	alias.Write(make([]byte, 16))
	alias.Write([]byte{0, 2, byte(len(text) >> 8), byte(len(text))})
	alias.Write(text)
	alias.Write([]byte{0xff, 0xff, 0, 0})
	entry := append(binary.BigEndian.AppendUint32(nil, uint32(12+alias.Len())), "alis\x00\x00\x00\x00"...)
	entry = append(entry, alias.Bytes()...)
	dref := append(binary.BigEndian.AppendUint32(nil, uint32(16+len(entry))), "dref\x00\x00\x00\x00\x00\x00\x00\x01"...)
	dref = append(dref, entry...)

	out, found := replaced(b, dref, "moov", "trak", "mdia", "minf", "dinf", "dref")
	if !found || !bytes.HasPrefix(out[4:], []byte("ftyp")) {
		t.Fatal("the video has no place for it")
	}
	return out
}

// replaced puts another box in the place of the one at the path.
func replaced(b, box []byte, path ...string) (out []byte, found bool) {
	for len(b) >= 8 {
		n := int(binary.BigEndian.Uint32(b))
		if n < 8 || n > len(b) {
			panic(fmt.Sprintf("a box of %d bytes", n))
		}
		switch kind := string(b[4:8]); {
		case found || kind != path[0]:
			out = append(out, b[:n]...)
		case len(path) == 1:
			out, found = append(out, box...), true
		default:
			var body []byte
			body, found = replaced(b[8:n], box, path[1:]...)
			out = binary.BigEndian.AppendUint32(out, uint32(8+len(body)))
			out = append(append(out, kind...), body...)
		}
		b = b[n:]
	}
	return append(out, b...), found
}
