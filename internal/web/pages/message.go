package pages

import (
	"atelier/internal/base/fault"
)

var errInvalidLink = fault.New(fault.NotFound, "This link is no longer valid or is incomplete.")

// messagePage is the data of a page with a short text and a link.
type messagePage struct {
	Title, Text string
	Alert       bool   // the text is a warning
	Link, Label string // the next page; may be empty
}

// linkPage is the data of a page that a link in a mail opens.
type linkPage struct{ Secret string }
