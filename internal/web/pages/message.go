package pages

import (
	"atelier/internal/base/fault"
)

var errInvalidLink = fault.New(fault.NotFound, "This link is no longer valid or is incomplete.")

// messagePage is the template data of a page with a short message and a link.
type messagePage struct {
	Title, Text string
	Alert       bool   // the text is a warning
	Link, Label string // URL and label of the link; may be empty
}

// linkPage is the template data of a page that a link in an e-mail opens.
// Secret is the secret in the link.
type linkPage struct{ Secret string }
