package main

import "atelier/build/apispec"

// document is the OpenAPI document that Go is generated from.
type document struct{ *apispec.Document }

// readDocument parses an OpenAPI document.
func readDocument(text []byte) (document, error) {
	d, err := apispec.Parse(text)
	return document{d}, err
}

// operationsByID returns all operations of the document.
func (d document) operationsByID() map[string]*apispec.Operation {
	all := map[string]*apispec.Operation{}
	for _, o := range d.Operations() {
		all[o.ID] = o
	}
	return all
}
