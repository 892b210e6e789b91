// Package provenance writes down what made a picture or a video, as XMP: the
// metadata that photo desks, archives and search engines read.
//
// The digital source type is the word of the IPTC for how media came to be. The
// rest says which tool of which service made it, with which seed and in which
// run, so that its owner can find that again. Words of the person who asked are
// there only where the operator wants them to be.
package provenance

import (
	"bytes"
	"encoding/xml"
	"strconv"
	"time"
	"unicode/utf8"
)

// Statement is what a result says about itself.
type Statement struct {
	Tool      string // its name
	ToolID    string
	RequestID string
	Seed      uint32
	Trained   bool   // a model made it that learned from examples
	Prompt    string // "" leaves it out
	Created   time.Time
}

// Of the IPTC's NewsCodes.
const (
	trainedMedia     = "http://cv.iptc.org/newscodes/digitalsourcetype/trainedAlgorithmicMedia"
	algorithmicMedia = "http://cv.iptc.org/newscodes/digitalsourcetype/algorithmicMedia"
)

// namespace is where the names of our own properties belong to.
const namespace = "urn:atelier:provenance:1.0"

// maxPrompt bounds the prompt, in bytes, so that the packet has room in every
// format.
const maxPrompt = 8 << 10

// Packet gives the statement as an XMP packet.
func (s Statement) Packet() []byte {
	var b bytes.Buffer
	b.WriteString(`<?xpacket begin="` + "\ufeff" + `" id="W5M0MpCehiHzreSzNTczkc9d"?>` +
		`<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">` +
		`<rdf:Description rdf:about="" xmlns:xmp="http://ns.adobe.com/xap/1.0/" xmlns:dc="http://purl.org/dc/elements/1.1/"` +
		` xmlns:Iptc4xmpExt="http://iptc.org/std/Iptc4xmpExt/2008-02-29/" xmlns:atelier="` + namespace + `">`)
	property := func(name, value string) {
		b.WriteString("<" + name + ">")
		_ = xml.EscapeText(&b, []byte(value)) // a buffer takes everything
		b.WriteString("</" + name + ">")
	}
	kind := algorithmicMedia
	if s.Trained {
		kind = trainedMedia
	}
	property("Iptc4xmpExt:DigitalSourceType", kind)
	property("xmp:CreatorTool", "Atelier")
	property("xmp:CreateDate", s.Created.UTC().Format(time.RFC3339))
	property("atelier:Tool", s.Tool)
	property("atelier:ToolID", s.ToolID)
	property("atelier:RequestID", s.RequestID)
	property("atelier:Seed", strconv.FormatUint(uint64(s.Seed), 10))
	if s.Prompt != "" {
		b.WriteString(`<dc:description><rdf:Alt><rdf:li xml:lang="x-default">`)
		_ = xml.EscapeText(&b, []byte(truncateText(s.Prompt, maxPrompt)))
		b.WriteString(`</rdf:li></rdf:Alt></dc:description>`)
	}
	b.WriteString(`</rdf:Description></rdf:RDF></x:xmpmeta><?xpacket end="r"?>`)
	return b.Bytes()
}

// truncateText gives the beginning of a text, whole letters of it.
func truncateText(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most]
}
