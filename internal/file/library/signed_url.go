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

// Kind is what an address leads to.
type Kind string

// The kinds of things that have addresses.
const (
	OfUpload Kind = "u"
	OfResult Kind = "r"
	OfRun    Kind = "p" // what a pending run shows so far
	OfInput  Kind = "i" // what a pending run works on, for the server that does
)

// The variants of a thing that have addresses of their own.
const (
	Whole   = "file"
	Thumb   = "thumb"
	Preview = "preview"
)

// sealLength is 128 bits, as many as nobody can try.
const sealLength = 16

// Links makes addresses that need no header, and opens them again. An address
// speaks for the person it was made for: who passes it on lends their own
// access, for as long as they have it and the address lasts.
type Links struct {
	Key      []byte
	BaseURL  string
	Lifetime time.Duration
	Now      func() time.Time
}

// Grant is what an address that opened allows.
type Grant struct {
	Kind     Kind
	ID       string // an upload's id, a result's or a run's UUID
	Variant  string
	ViewerID string
}

// URL makes an address for one variant of one thing. It ends in the name, which is
// for people and programs that save the file: it is not signed, and an address
// opens with any other and without one.
func (l Links) URL(kind Kind, id, variant, viewerID, name string) string {
	expires := strconv.FormatInt(l.Now().Add(l.Lifetime).Unix(), 10)
	g := Grant{kind, id, variant, viewerID}
	q := url.Values{"v": {viewerID}, "e": {expires}, "s": {base64.RawURLEncoding.EncodeToString(l.computeSeal(g, expires))}}
	return l.BaseURL + "/media/" + url.PathEscape(string(kind)) + "/" + url.PathEscape(id) + "/" + url.PathEscape(variant) + "/" + url.PathEscape(name) + "?" + q.Encode()
}

// errSignature is one answer for everything that is wrong with an address.
var errSignature = fault.New(fault.Forbidden, "This address is not valid any more. Ask for a new one.").With("reason", "signature")

// Open reads the parts of an address that URL made. Parameters other than its
// own are none of its business.
func (l Links) Open(kind Kind, id, variant string, query url.Values) (Grant, error) {
	for _, name := range []string{"v", "e", "s"} {
		if len(query[name]) != 1 {
			return Grant{}, errSignature
		}
	}
	g := Grant{kind, id, variant, query.Get("v")}
	expires := query.Get("e")
	text := query.Get("s")
	// The decoder would skip line ends, and two addresses were one.
	seal, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(text) != base64.RawURLEncoding.EncodedLen(sealLength) || !hmac.Equal(seal, l.computeSeal(g, expires)) {
		return Grant{}, errSignature
	}
	// The seal covers the text of the time, so it is one that URL wrote.
	if at, err := strconv.ParseInt(expires, 10, 64); err != nil || !l.Now().Before(time.Unix(at, 0)) {
		return Grant{}, errSignature
	}
	return g, nil
}

// computeSeal signs the parts, each after its length: none can be taken for another.
func (l Links) computeSeal(g Grant, expires string) []byte {
	m := hmac.New(sha256.New, l.Key)
	for _, part := range []string{string(g.Kind), g.ID, g.Variant, g.ViewerID, expires} {
		m.Write(binary.AppendUvarint(nil, uint64(len(part))))
		m.Write([]byte(part))
	}
	return m.Sum(nil)[:sealLength]
}
