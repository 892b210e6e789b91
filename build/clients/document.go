package main

import (
	"slices"

	"atelier/build/apispec"
)

// document is the OpenAPI document that the libraries are generated from.
type document struct{ *apispec.Document }

// operation is a call with its references resolved.
type operation struct {
	*apispec.Operation
	parameters []*apispec.Parameter
	team       bool // the parameter team_id selects the account
}

// operations returns all operations in the order of the document.
func (d document) operations() []operation {
	var all []operation
	for _, o := range d.Operations() {
		op := operation{Operation: o}
		for _, p := range o.Parameters {
			if name := apispec.RefName(p.Ref); name == "TeamID" || name == "LibraryTeams" {
				op.team = true
			}
			op.parameters = append(op.parameters, d.ResolveParameter(p))
		}
		all = append(all, op)
	}
	return all
}

// has reports whether the operation has a parameter with this name.
func (o *operation) has(name string) bool {
	return slices.ContainsFunc(o.parameters, func(p *apispec.Parameter) bool { return p.Name == name })
}

// result returns the content of the first successful response.
func (d document) result(o operation) apispec.Map[apispec.Media] {
	for _, r := range o.Responses {
		if r.Key[0] == '2' {
			return d.ResolveResponse(r.Value).Content
		}
	}
	return nil
}
