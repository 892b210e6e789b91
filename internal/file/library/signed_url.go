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

// The variants of a file that have URLs of their own.
const (
	VariantFile    = "file"
	VariantThumb   = "thumb"
	VariantPreview = "preview"
)

// sealLength is 128 bits, too many to guess.
const sealLength = 16

// URLSigner creates and verifies signed URLs, which need no Authorization header. A
// signed URL carries the access of the person it was created for: it works
// until it expires or the person loses access.
type URLSigner struct {
	Key      []byte
	BaseURL  string
	Lifetime time.Duration
	Now      func() time.Time
}

// SignedURL is the content of a verified signed URL.
type SignedURL struct {
	Kind     URLKind
	ID       string // ID of an upload, UUID of a result or run
	Variant  string
	ViewerID string
}

// SignURL returns a signed URL for one variant of a file. The URL ends in the file
// name, which is not signed: it is for display and for saving, and the URL
// works with any other name or none.
func (l URLSigner) SignURL(kind URLKind, id, variant, viewerID, name string) string {
	expires := strconv.FormatInt(l.Now().Add(l.Lifetime).Unix(), 10)
	g := SignedURL{kind, id, variant, viewerID}
	q := url.Values{"v": {viewerID}, "e": {expires}, "s": {base64.RawURLEncoding.EncodeToString(l.computeSeal(g, expires))}}
	return l.BaseURL + "/media/" + url.PathEscape(string(kind)) + "/" + url.PathEscape(id) + "/" + url.PathEscape(variant) + "/" + url.PathEscape(name) + "?" + q.Encode()
}

// errSignature is the same error for everything that is wrong with a signed
// URL.
var errSignature = fault.New(fault.Forbidden, "This URL is no longer valid. Request a new one.").With("reason", "signature")

// VerifyURL verifies the parts of a signed URL. It ignores unknown query parameters.
func (l URLSigner) VerifyURL(kind URLKind, id, variant string, query url.Values) (SignedURL, error) {
	for _, name := range []string{"v", "e", "s"} {
		if len(query[name]) != 1 {
			return SignedURL{}, errSignature
		}
	}

	g := SignedURL{kind, id, variant, query.Get("v")}
	expires := query.Get("e")
	text := query.Get("s")
	// The decoder ignores line ends, so the length is checked too: else several
	// URLs would have the same signature.
	seal, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(text) != base64.RawURLEncoding.EncodedLen(sealLength) || !hmac.Equal(seal, l.computeSeal(g, expires)) {
		return SignedURL{}, errSignature
	}
	// The signature covers the expiry time, so it has the form that SignURL
	// wrote.
	if at, err := strconv.ParseInt(expires, 10, 64); err != nil || !l.Now().Before(time.Unix(at, 0)) {
		return SignedURL{}, errSignature
	}
	return g, nil
}

// computeSeal signs the parts. Each part follows its length, so that no two
// lists of parts have the same input.
func (l URLSigner) computeSeal(g SignedURL, expires string) []byte {
	m := hmac.New(sha256.New, l.Key)
	for _, part := range []string{string(g.Kind), g.ID, g.Variant, g.ViewerID, expires} {
		m.Write(binary.AppendUvarint(nil, uint64(len(part))))
		m.Write([]byte(part))
	}
	return m.Sum(nil)[:sealLength]
}
