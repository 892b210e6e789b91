package library

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"net/url"
	"strconv"
	"time"

	"atelier/internal/base/fault"
)

// URLKind is the kind of object that a signed URL refers to.
type URLKind string

// The kinds of objects that have signed URLs.
const (
	KindUpload     URLKind = "u"
	KindResult     URLKind = "r"
	KindRunPreview URLKind = "p" // the preview of a pending run
	KindInput      URLKind = "i" // an input file of a pending run, for the model server
)

// The variants of a file, each of which has its own URL.
const (
	VariantFile    = "file"
	VariantThumb   = "thumb"
	VariantPreview = "preview"
)

// sealLength is the length of a URL's signature in bytes. 128 bits are too
// many to guess.
const sealLength = 16

// URLSigner creates and verifies signed URLs, which need no Authorization
// header. A signed URL grants the access of the person for whom it was
// created: it works until it expires or the person loses access.
type URLSigner struct {
	Key      []byte
	BaseURL  string
	Lifetime time.Duration
	Now      func() time.Time
}

// SignedURL contains the verified parts of a signed URL.
type SignedURL struct {
	Kind     URLKind
	ID       string // ID of an upload, or UUID of a result or run
	Variant  string
	ViewerID string
	Expires  time.Time
}

// IsFinal reports whether the content of the URL never changes, so that
// browsers can cache it. The preview of a run changes while the run is pending,
// and model servers read an input file only once.
func (g SignedURL) IsFinal() bool { return g.Kind == KindUpload || g.Kind == KindResult }

// CacheTime is the longest time for which browsers cache a file. URLs of files
// stay the same for this time, so that browsers use their cache.
const CacheTime = 24 * time.Hour

// SignURL returns a signed URL for one variant of a file. viewerID is the
// person for whom it is created. The URL ends in the file name, which is not
// signed: it is only for display and downloads, and the URL works with any
// other name or none.
//
// The URL of a file is valid at least for Lifetime. The end is rounded up to
// midnight UTC, or to a multiple of Lifetime if that is shorter than a day, so
// that repeated calls return the same URL.
func (l URLSigner) SignURL(kind URLKind, id, variant, viewerID, name string) string {
	g := SignedURL{Kind: kind, ID: id, Variant: variant, ViewerID: viewerID}
	end := l.Now().Add(l.Lifetime)
	if g.IsFinal() {
		end = roundUp(end, min(l.Lifetime, CacheTime))
	}
	expires := strconv.FormatInt(end.Unix(), 10)
	q := url.Values{"v": {viewerID}, "e": {expires}, "s": {base64.RawURLEncoding.EncodeToString(l.computeSeal(g, expires))}}
	return l.BaseURL + "/media/" + url.PathEscape(string(kind)) + "/" + url.PathEscape(id) + "/" + url.PathEscape(variant) + "/" + url.PathEscape(name) + "?" + q.Encode()
}

// roundUp rounds a time up to a multiple of d since the zero time, which is a
// midnight in UTC.
func roundUp(t time.Time, d time.Duration) time.Time {
	if down := t.Truncate(d); down.Before(t) {
		return down.Add(d)
	}
	return t
}

// errSignature is the error for every invalid or expired signed URL. It does
// not contain the reason.
var errSignature = fault.New(fault.Forbidden, "This URL is no longer valid. Request a new one.").With("reason", "signature")

// VerifyURL verifies the parts of a signed URL. It ignores unknown query parameters.
func (l URLSigner) VerifyURL(kind URLKind, id, variant string, query url.Values) (SignedURL, error) {
	for _, name := range []string{"v", "e", "s"} {
		if len(query[name]) != 1 {
			return SignedURL{}, errSignature
		}
	}

	g := SignedURL{Kind: kind, ID: id, Variant: variant, ViewerID: query.Get("v")}
	expires := query.Get("e")
	text := query.Get("s")
	// The decoder ignores line breaks, so the length is checked too. Otherwise
	// several strings would decode to the same signature.
	seal, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(text) != base64.RawURLEncoding.EncodedLen(sealLength) || !hmac.Equal(seal, l.computeSeal(g, expires)) {
		return SignedURL{}, errSignature
	}
	// The signature covers the expiry time, so the time has the form that
	// SignURL wrote.
	at, err := strconv.ParseInt(expires, 10, 64)
	g.Expires = time.Unix(at, 0)
	if err != nil || !l.Now().Before(g.Expires) {
		return SignedURL{}, errSignature
	}
	return g, nil
}

// computeSeal returns the signature of a URL's parts. Each part is preceded by
// its length, so that different lists of parts have different signatures.
func (l URLSigner) computeSeal(g SignedURL, expires string) []byte {
	m := hmac.New(sha256.New, l.Key)
	for _, part := range []string{string(g.Kind), g.ID, g.Variant, g.ViewerID, expires} {
		m.Write(binary.AppendUvarint(nil, uint64(len(part))))
		m.Write([]byte(part))
	}
	return m.Sum(nil)[:sealLength]
}
