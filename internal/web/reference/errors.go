package reference

import (
	"strings"

	"go.yaml.in/yaml/v3"
)

// errorLink leads from an operation to an error that it shares with others.
type errorLink struct {
	Status, Class, Name, Href string
}

// errorSection describes an error that operations share.
type errorSection struct {
	Anchor, Name string
	Response     responseView
}

const responsesPrefix = "#/components/responses/"

// errorLink makes the link to the section of a shared error. Answers that an
// operation describes itself, and successes, have none.
func (b *builder) errorLink(status string, n *yaml.Node) (errorLink, bool) {
	ref := child(original(n), "$ref")
	isError := status == "default" || strings.HasPrefix(status, "4") || strings.HasPrefix(status, "5")
	if ref == nil || !isError {
		return errorLink{}, false
	}
	name, isShared := strings.CutPrefix(ref.Value, responsesPrefix)
	if _, known := b.doc.Components.Responses.get(name); !isShared || !known {
		return errorLink{}, false
	}

	anchor, ok := b.errors[name]
	if !ok {
		anchor = b.anchor("error-" + name)
		b.errors[name] = anchor
	}
	link := errorLink{Status: status, Class: "s" + status[:1], Name: name, Href: "#" + anchor}
	if status == "default" {
		link.Status = "other"
		link.Class = "other"
	}
	return link, true
}

// errorSections are the errors that operations lead to, as the document orders
// them.
func (b *builder) errorSections() []errorSection {
	var all []errorSection
	for _, r := range b.doc.Components.Responses {
		if anchor, ok := b.errors[r.Key]; ok {
			all = append(all, errorSection{anchor, r.Key, b.response("", read[response](b, &r.Value))})
		}
	}
	return all
}
