package media_test

import (
	"strings"
	"testing"

	"atelier/internal/base/fault"
	"atelier/internal/file/media"
)

// seed adds good and hostile files, the short ones.
func seed(f *testing.F, add func(file string)) {
	f.Helper()
	for _, s := range samples() {
		add(s.file)
	}
	for _, file := range hostile() {
		if len(file) < 4096 {
			add(file)
		}
	}
}

func FuzzSniff(f *testing.F) {
	seed(f, func(file string) { f.Add([]byte(file)) })
	f.Fuzz(func(t *testing.T, head []byte) {
		found, ok := media.Sniff(head)
		if ok && (found.Type == "" || found.Type == media.Text || found.MimeType == "" || found.Ext == "") {
			t.Errorf("%+v", found)
		}
		for _, start := range []string{"<", "%PDF", "PK", "MZ", "\x7fELF", "BM", "II*", "MM\x00*"} {
			if ok && strings.HasPrefix(string(head), start) && string(head[4:8]) != "ftyp" {
				t.Errorf("%q was detected as %s", start, found.MimeType)
			}
		}
	})
}

// FuzzClean proves that what was cleaned is clean, whatever it was detected as.
func FuzzClean(f *testing.F) {
	seed(f, func(file string) {
		for i, format := range media.Formats() {
			if found, _ := sniff(file); found == format {
				f.Add([]byte(file), i)
			}
		}
	})
	f.Fuzz(func(t *testing.T, file []byte, index int) {
		format := media.Formats()[uint(index)%uint(len(media.Formats()))]
		once, err := clean(format, string(file))
		if err != nil {
			if !fault.Is(err, fault.Invalid) {
				t.Error(err)
			}
			return
		}
		if len(once) > len(file)+64 { // a whole Exif segment in place of a crippled one
			t.Errorf("%d bytes out of %d", len(once), len(file))
		}
		if twice, err := clean(format, once); err != nil || twice != once {
			t.Errorf("cleaning twice changes it: %v", err)
		}
		if format.Type != media.Audio {
			return
		}
		marked, err := mark(format, strings.NewReader(once), packet)
		if err != nil {
			t.Errorf("a clean file cannot be marked: %v", err)
		}
		if unmarked, err := clean(format, marked); err != nil || unmarked != once {
			t.Errorf("marking and cleaning changes it: %v", err)
		}
	})
}

func FuzzExamine(f *testing.F) {
	seed(f, func(file string) { f.Add([]byte(file)) })
	analyzer := media.NewAnalyzer(media.Limits{Pixels: 1e5})
	f.Fuzz(func(t *testing.T, file []byte) {
		format, ok := media.Sniff(file)
		if !ok {
			return
		}
		facts, err := examine(analyzer, format, string(file))
		if err != nil {
			if !fault.Is(err, fault.Invalid) {
				t.Error(err)
			}
			return
		}
		picture := format.Type == media.Image || format.Type == media.Video
		if facts.Width < 0 || facts.Height < 0 || facts.Duration < 0 || int64(facts.Width)*int64(facts.Height) > 1e5 || picture != (facts.Width > 0 && facts.Height > 0) {
			t.Errorf("%+v", facts)
		}
	})
}
