package api_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"atelier/internal/base/sqldb/dbtest"
	"atelier/internal/testkit/browser"
)

func le(v int) string { return string(binary.LittleEndian.AppendUint32(nil, uint32(v))) }

func pngChunk(name, body string) string {
	return string(binary.BigEndian.AppendUint32(nil, uint32(len(body)))) + name + body + string(binary.BigEndian.AppendUint32(nil, crc32.ChecksumIEEE([]byte(name+body))))
}

func riffChunk(name, body string) string {
	if len(body)%2 == 1 {
		body += " "
	}
	return name + le(len(body)) + body
}

// polyglots are files that are also pages: html stands in every place where a
// format leaves room for it.
func polyglots(html string) map[string]string {
	m := image.NewPaletted(image.Rect(0, 0, 8, 8), color.Palette{color.Black, color.White})
	var j, g bytes.Buffer
	if jpeg.Encode(&j, m, nil) != nil || gif.Encode(&g, m, nil) != nil {
		panic("a buffer takes everything")
	}
	p, jp, gi, wav := string(picture(8, 8)), j.String(), g.String(), string(tone(1044))
	segment := func(marker byte, body string) string {
		return "\xff" + string([]byte{marker, byte((len(body) + 2) >> 8), byte(len(body) + 2)}) + body
	}
	// A picture of one pixel, lossless.
	webp := riffChunk("VP8L", "\x2f\x00\x00\x00\x00\x07\x10\x11\x11\x88\x88\x08")
	frame := "\xff\xfb\x90\x00" + strings.Repeat("\x00", 413)
	mp3 := strings.Repeat(frame, 10)
	tag := func(body string) string {
		n := len(body)
		return "ID3\x04\x00\x00" + string([]byte{byte(n >> 21 & 127), byte(n >> 14 & 127), byte(n >> 7 & 127), byte(n & 127)}) + body
	}
	scene := `{"asset":{"version":"2.0","generator":"` + strings.ReplaceAll(html, `"`, `'`) + `"}}`
	scene += strings.Repeat(" ", (4-len(scene)%4)%4)
	riff := func(kind, body string) string { return "RIFF" + le(len(body)+4) + kind + body }
	comment := func(s string) string { return "\x21\xfe" + string([]byte{byte(len(s))}) + s + "\x00" }
	return map[string]string{
		"png, text":            p[:33] + pngChunk("tEXt", "Comment\x00"+html) + p[33:],
		"png, text at the end": p[:len(p)-12] + pngChunk("iTXt", "XML:com.adobe.xmp\x00\x00\x00\x00\x00"+html) + p[len(p)-12:],
		"png, private chunk":   p[:33] + pngChunk("scRp", html) + p[33:],
		"png, behind":          p + html,
		"png and zip":          p + "PK\x03\x04" + html + "PK\x05\x06",
		"png and pdf":          p + "%PDF-1.7\n" + html,
		"jpeg, comment":        jp[:2] + segment(0xfe, html) + jp[2:],
		"jpeg, exif":           jp[:2] + segment(0xe1, "Exif\x00\x00"+html) + jp[2:],
		"jpeg, xmp":            jp[:2] + segment(0xe1, "http://ns.adobe.com/xap/1.0/\x00"+html) + jp[2:],
		"jpeg, private":        jp[:2] + segment(0xe9, html) + jp[2:],
		"jpeg, behind":         jp + html,
		"gif, comment":         gi[:len(gi)-1] + comment(html) + ";",
		"gif, behind":          gi + html,
		"gif as a script":      "GIF89a/*\x00\x00\x00\x00\x00" + gi[13:] + "*/=1;alert('ran')//",
		"webp, unknown chunk":  riff("WEBP", webp+riffChunk("what", html)),
		"webp, xmp":            riff("WEBP", webp+riffChunk("XMP ", html)),
		"webp, behind":         riff("WEBP", webp) + html,
		"mp3, tag":             tag("TXXX"+html) + mp3,
		"mp3, behind":          mp3 + html,
		"mp3, inside":          strings.Repeat(frame, 5) + "\xff\xfb\x90\x00" + html + strings.Repeat("\x00", max(413-len(html), 0)) + mp3,
		"wav, list":            riff("WAVE", riffChunk("LIST", "INFOICMT"+html)+wav[12:]),
		"wav, before":          riff("WAVE", riffChunk("junk", html)+wav[12:]),
		"wav, behind":          wav + html,
		"wav, as sound":        riff("WAVE", wav[12:36]+riffChunk("data", html+html+"  ")),
		"glb, generator":       "glTF" + le(2) + le(20+len(scene)) + le(len(scene)) + "JSON" + scene,
		"flac, comment":        "fLaC\x00\x00\x00\x22" + strings.Repeat("\x00", 10) + "\x0a\xc4\x42\xf0\x00\x00\x10\x00" + strings.Repeat("\x00", 16) + "\x84\x00\x00" + string([]byte{byte(len(html))}) + html + "\xff\xf8frame",
		"html":                 html,
		"html after a mark":    "\ufeff" + html,
		"svg":                  `<svg xmlns="http://www.w3.org/2000/svg" onload="alert('ran')"/>`,
		"xml":                  `<?xml version="1.0"?><html xmlns="http://www.w3.org/1999/xhtml"><script>alert('ran')</script></html>`,
	}
}

// texts are results that tools may write.
func texts(html string) map[string]string {
	return map[string]string{
		"text, html": html, "text, a page": "<!DOCTYPE html><html>" + html, "text, svg": `<svg xmlns="http://www.w3.org/2000/svg" onload="alert('ran')"/>`, "text, xml": `<?xml version="1.0"?><html xmlns="http://www.w3.org/1999/xhtml"><script>alert('ran')</script></html>`,
		"text, utf-7": "+ADw-script+AD4-alert('ran')+ADw-/script+AD4-", "text, script": "alert('ran')", "text, with a mark": "\ufeff" + html, "text, refresh": `<meta http-equiv=refresh content="0;url=javascript:alert('ran')">` + html,
	}
}

// TestNothingRunsInFiles opens files that carry scripts as pages of a real
// browser.
func TestNothingRunsInFiles(t *testing.T) {
	t.Parallel()
	var ran atomic.Int64
	canary := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/control":
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprintf(w, "<script>new Image().src='/ran'</script>")
		case "/ran":
			ran.Add(1)
		case "/start":
			w.Header().Set("Content-Type", "text/html")
			w.Write([]byte("<title>start</title>"))
		}
	}))
	t.Cleanup(canary.Close)
	b := browser.Open(t)
	b.Goto(canary.URL + "/control")
	if b.Eval(`new Promise(done => setTimeout(done, 100))`); ran.Load() == 0 {
		t.Fatal("a script that may run is not noticed")
	}
	ran.Store(0)

	m := newRunFixture(t, dbtest.Open(t, dbtest.URL(t, "sqlite")), limits, setHighLimits)
	m.work()
	html := `<script>alert('ran');new Image().src='` + canary.URL + `/ran';location='` + canary.URL + `/ran'</script><img src=x onerror=alert('ran')><body onload=alert('ran')>`
	addresses := map[string]string{}
	for name, data := range polyglots(html) {
		a := m.send("POST", "/api/v2/uploads?name=page.html", "application/octet-stream", strings.NewReader(data))
		if a.StatusCode == 201 {
			addresses[name] = decodeAnswer[struct{ URL string }](t, a).URL
		} else if a.StatusCode/100 != 4 {
			t.Errorf("%s = %d %s", name, a.StatusCode, a.body)
		}
	}
	for name := range addresses {
		if name == "html" || name == "svg" || name == "xml" || name == "html after a mark" {
			t.Errorf("%s was accepted", name)
		}
	}
	for name, data := range texts(html) {
		rec := m.done("", m.body("words", steps(raw([]byte(data)))))
		if len(rec.Outputs) == 1 {
			addresses[name] = *rec.Outputs[0].URL
		}
	}
	if len(addresses) < 20 {
		t.Errorf("only %d files were accepted: %v", len(addresses), addresses)
	}
	for name, address := range addresses {
		address = strings.Replace(address, "https://atelier.example", m.url, 1)
		head := m.fetch("HEAD", address)
		kind := head.Header.Get("Content-Type")
		if strings.Contains(kind, "html") || strings.Contains(kind, "xml") || strings.Contains(kind, "script") {
			t.Errorf("%s is served as %s", name, kind)
		}
		want := address
		if strings.HasPrefix(head.Header.Get("Content-Disposition"), "inline") {
			b.Goto(address)
		} else { // it is saved, and the page stays
			want = canary.URL + "/start"
			b.Goto(want)
			b.Eval(fmt.Sprintf(`location.href = %q; 0`, address))
		}
		<-time.After(30 * time.Millisecond) // pages that may run nothing have no timers
		if got := b.URL(); got != want {
			t.Errorf("%s leads to %s, want %s", name, got, want)
		}
		if title := b.Eval(`document.title`); title == "ran" {
			t.Errorf("%s has run", name)
		}
	}
	if got := b.Dialogs(); len(got) > 0 || ran.Load() > 0 {
		t.Errorf("scripts have run: dialogs %v, %d calls", got, ran.Load())
	}
	t.Logf("%d files were opened", len(addresses))
}
