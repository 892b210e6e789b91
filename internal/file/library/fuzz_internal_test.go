package library

import (
	"net/url"
	"strings"
	"testing"
	"time"
)

// FuzzVerifyURL proves that only a signed URL is accepted, and only for what it
// was signed for.
func FuzzVerifyURL(f *testing.F) {
	now := time.Date(2026, 11, 17, 12, 0, 0, 0, time.UTC)
	signer := URLSigner{Key: []byte("key of the fuzz target"), BaseURL: "https://atelier.example", Lifetime: time.Hour, Now: func() time.Time { return now }}
	f.Add("run:1", "original", "anna", "a.png", "v=anna&e=1&s=AAAA")
	f.Add("", "", "", "", "")
	f.Add("a/b", "..", "é", "?#%", "v=&e=9223372036854775807&s="+strings.Repeat("A", 43))
	f.Fuzz(func(t *testing.T, id, variant, viewer, name, query string) {
		u, err := url.Parse(signer.SignURL(KindResult, id, variant, viewer, name))
		if err != nil || u.Host != "atelier.example" {
			t.Fatalf("the URL of %q is %v, %v", id, u, err)
		}
		signed := u.Query()
		got, err := signer.VerifyURL(KindResult, id, variant, signed)
		if err != nil || got.ID != id || got.Variant != variant || got.ViewerID != viewer || !got.Expires.After(now) {
			t.Errorf("the own URL of %q = %+v, %v", id, got, err)
		}
		for what, err := range map[string]error{
			"another id":      verifyError(signer, KindResult, id+"x", variant, signed),
			"another variant": verifyError(signer, KindResult, id, variant+"x", signed),
			"another kind":    verifyError(signer, KindUpload, id, variant, signed),
		} {
			if err == nil {
				t.Errorf("the URL of %q is accepted for %s", id, what)
			}
		}
		foreign, err := url.ParseQuery(query)
		if err == nil && foreign.Get("s") != signed.Get("s") && verifyError(signer, KindResult, id, variant, foreign) == nil {
			t.Errorf("%q is accepted", query)
		}
	})
}

func verifyError(s URLSigner, kind URLKind, id, variant string, query url.Values) error {
	_, err := s.VerifyURL(kind, id, variant, query)
	return err
}

// FuzzSplitItemID proves that the id of a result has one form only.
func FuzzSplitItemID(f *testing.F) {
	f.Add("PagW53lsaa2KiGgg5wR4:123e4567-e89b-12d3-a456-426614174000")
	f.Add("PagW53lsaa2KiGgg5wR4:123E4567-e89b-12d3-a456-426614174000")
	f.Add(":")
	f.Fuzz(func(t *testing.T, id string) {
		if run, result, ok := SplitItemID(id); ok && (run+":"+result != id || len(id) != len("PagW53lsaa2KiGgg5wR4:123e4567-e89b-12d3-a456-426614174000")) {
			t.Errorf("%q = %q, %q", id, run, result)
		}
	})
}
