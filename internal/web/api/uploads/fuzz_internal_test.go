package uploads

import (
	"encoding/base64"
	"net/http"
	"strconv"
	"testing"

	"atelier/internal/base/fault"
)

// FuzzReadDraft proves that the headers which begin a resumable upload are
// either refused as a whole or lead to a draft within its bounds, whose metadata
// can be sent back.
func FuzzReadDraft(f *testing.F) {
	for _, metadata := range []string{"", "filename YS5wbmc=", "filename YS5wbmc=,type aW1hZ2U=", "a,b", "a a", "filename", "a ,a ", "é YQ==", ",", "filename  YQ=="} {
		f.Add("100", metadata, "key")
	}
	for _, length := range []string{"0", "-1", "+1", "9223372036854775807", "9223372036854775808", "1e3", "0x10", "01", " 1"} {
		f.Add(length, "", "")
	}
	f.Fuzz(func(t *testing.T, length, metadata, key string) {
		h := &ResumableHandler{MaxKeyLength: 255}
		header := http.Header{"Upload-Length": {length}, "Upload-Metadata": {metadata}, "Idempotency-Key": {key}}
		d, err := h.readDraft(header)
		if err != nil {
			if !fault.Is(err, fault.Invalid) {
				t.Errorf("%q, %q, %q = %v", length, metadata, key, err)
			}
			return
		}
		if n, err := strconv.ParseInt(length, 10, 64); err != nil || n != d.Length || d.Length < 1 {
			t.Errorf("length %q = %d", length, d.Length)
		}
		if len(d.Metadata) > maxMetadata || d.Metadata != metadata {
			t.Errorf("metadata %q = %q", metadata, d.Metadata)
		}
		for i := range len(d.Metadata) {
			if c := d.Metadata[i]; (c < ' ' || c > '~') && c != '\t' {
				t.Errorf("metadata %q cannot be sent in a header", d.Metadata)
			}
		}
		if name, ok := fileName("filename " + base64.StdEncoding.EncodeToString([]byte(d.Name))); !ok || name != d.Name {
			t.Errorf("the name %q is read as %q, %v", d.Name, name, ok)
		}
		if d.Key != key {
			t.Errorf("key %q = %q", key, d.Key)
		}
	})
}

// FuzzReadChecksum proves that a checksum has the length of its algorithm and is
// written and read without a change.
func FuzzReadChecksum(f *testing.F) {
	for _, text := range []string{"", "sha1 2jmj7l5rSw0yVb/vlWAYkK/YBwk=", "sha256 47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=", "sha1", "md5 AAAA", "sha1  2jmj7l5rSw0yVb/vlWAYkK/YBwk=", "SHA1 2jmj7l5rSw0yVb/vlWAYkK/YBwk="} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		c, ok := readChecksum([]string{text})
		if !ok {
			return
		}
		if c == nil || len(c.Sum) != c.Hash.Size() {
			t.Fatalf("%q = %+v", text, c)
		}
		algorithm := map[int]string{20: "sha1", 32: "sha256"}[len(c.Sum)]
		again, ok := readChecksum([]string{algorithm + " " + base64.StdEncoding.EncodeToString(c.Sum)})
		if !ok || string(again.Sum) != string(c.Sum) {
			t.Errorf("%q is read as %x, then as %+v", text, c.Sum, again)
		}
	})
}
