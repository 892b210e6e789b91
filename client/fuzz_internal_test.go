package client

import (
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"
)

// FuzzReadEvents proves that a stream ends with an error unless its reader ends
// it, and that the events are written and read again without a change.
func FuzzReadEvents(f *testing.F) {
	for _, stream := range []string{"", ": hello\n\n", "id: 1\nevent: run\ndata: {}\n\n", "data: a\ndata: b\n\n", "data\n\n", "event:x\n\n", "id:7\n\ndata:1\n\n", "data: 1\r\n\r\n", ":\n:\n", "retry: 5\n\n", "data:  two\n\n"} {
		f.Add(stream)
	}
	f.Fuzz(func(t *testing.T, stream string) {
		read := func(stream string) (all []Event, err error) {
			err = readEvents(strings.NewReader(stream), func(e Event) bool { all = append(all, e); return true })
			return all, err
		}
		all, err := read(stream)
		if err == nil || len(all) > strings.Count(stream, "\n") {
			t.Fatalf("%q has %d events, %v", stream, len(all), err)
		}
		var written strings.Builder
		for _, e := range all {
			if strings.Contains(e.ID+e.Name, "\n") {
				t.Fatalf("%+v has a line break in its id or name", e)
			}
			written.WriteString("id: " + e.ID + "\nevent: " + e.Name + "\n")
			for line := range strings.SplitSeq(string(e.Data), "\n") {
				written.WriteString("data: " + line + "\n")
			}
			written.WriteString("\n")
		}
		again, err := read(written.String())
		if !errors.Is(err, io.ErrUnexpectedEOF) || len(again) != len(all) {
			t.Fatalf("%d events are read as %d, %v", len(all), len(again), err)
		}
		for i := range all {
			if again[i].ID != all[i].ID || again[i].Name != all[i].Name || string(again[i].Data) != string(all[i].Data) {
				t.Errorf("%+v is read as %+v", all[i], again[i])
			}
		}
	})
}

// FuzzVerify proves that a webhook is accepted only with a signature for its id,
// time and body, whatever else the header has.
func FuzzVerify(f *testing.F) {
	secret := "whsec_" + base64.StdEncoding.EncodeToString([]byte("0123456789abcdef01234567"))
	v, err := NewVerifier(secret)
	if err != nil {
		f.Fatal(err)
	}
	now := time.Unix(1_800_000_000, 0)
	stamp := strconv.FormatInt(now.Unix(), 10)
	right := "v1," + base64.StdEncoding.EncodeToString(sign(v.keys[0], "msg", stamp, []byte("{}")))
	f.Add("msg", stamp, right, []byte("{}"))
	f.Add("msg", stamp, "v1,AAAA v2,x "+right, []byte("{}"))
	f.Add("msg", "+"+stamp, right, []byte("{}"))
	f.Add("msg", "9223372036854775807", right, []byte("{}"))
	f.Add("", "-9223372036854775808", "v1,", []byte(nil))
	f.Fuzz(func(t *testing.T, id, stamp, signatures string, body []byte) {
		header := http.Header{}
		header.Set("Webhook-Id", id)
		header.Set("Webhook-Timestamp", stamp)
		header.Set("Webhook-Signature", signatures)
		if err := v.verifyAt(header, body, now); err == nil {
			seconds, err := strconv.ParseInt(stamp, 10, 64)
			want := base64.StdEncoding.EncodeToString(sign(v.keys[0], id, stamp, body))
			if err != nil || max(seconds, now.Unix())-min(seconds, now.Unix()) > int64(webhookTolerance/time.Second) || !strings.Contains(signatures, strings.TrimRight(want, "=")) {
				t.Errorf("%q, %q, %q is accepted for %q", id, stamp, signatures, body)
			}
		}
		if id == "" {
			return
		}
		stamp = strconv.FormatInt(now.Unix(), 10)
		header.Set("Webhook-Timestamp", stamp)
		header.Set("Webhook-Signature", "v1,"+base64.StdEncoding.EncodeToString(sign(v.keys[0], id, stamp, body)))
		if err := v.verifyAt(header, body, now); err != nil {
			t.Errorf("the right signature for %q is refused: %v", id, err)
		}
		if err := v.verifyAt(header, append(body, 'x'), now); err == nil {
			t.Error("another body is accepted")
		}
	})
}

// FuzzParseRetryAfter proves that a wait is never negative.
func FuzzParseRetryAfter(f *testing.F) {
	for _, text := range []string{"", "5", "-1", "1.5", "99999999999999999999", "Sun, 15 Nov 2026 09:30:00 GMT", "9223372036854775807", "9223372037"} {
		f.Add(text)
	}
	now := time.Date(2026, 11, 15, 9, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, text string) {
		if wait := parseRetryAfter(text, now); wait < 0 {
			t.Errorf("%q = %v", text, wait)
		}
	})
}
