package main

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/url"
	"runtime/debug"
	"time"
)

// The types below are the parts of CycloneDX 1.6 that a bill of materials of a
// Go program needs.
type bill struct {
	BOMFormat    string       `json:"bomFormat"`
	SpecVersion  string       `json:"specVersion"`
	SerialNumber string       `json:"serialNumber"`
	Version      int          `json:"version"`
	Metadata     billMetadata `json:"metadata"`
	Components   []component  `json:"components"`
	Dependencies []dependency `json:"dependencies"`
}

type billMetadata struct {
	Timestamp  string     `json:"timestamp"`
	Component  component  `json:"component"`
	Properties []property `json:"properties"`
}

type component struct {
	Type     string        `json:"type"`
	Ref      string        `json:"bom-ref"`
	Name     string        `json:"name"`
	Version  string        `json:"version"`
	PURL     string        `json:"purl,omitempty"`
	Licences []licenceItem `json:"licenses,omitempty"`
	Hashes   []hash        `json:"hashes,omitempty"`
}

type licenceItem struct {
	Licence licenceID `json:"license"`
}

type licenceID struct {
	ID string `json:"id"`
}

type hash struct {
	Algorithm string `json:"alg"`
	Content   string `json:"content"`
}

type property struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

type dependency struct {
	Ref       string   `json:"ref"`
	DependsOn []string `json:"dependsOn"`
}

// billOfMaterials lists the modules that the Go linker recorded in a program,
// as a CycloneDX document.
func billOfMaterials(s Source, p Program) ([]byte, error) {
	digest, err := fileDigest(p.Path)
	if err != nil {
		return nil, err
	}
	own := component{
		Type:     "application",
		Ref:      "atelier",
		Name:     "atelier",
		Version:  s.Version,
		Licences: []licenceItem{{licenceID{"Apache-2.0"}}},
		Hashes:   []hash{{"SHA-256", digest}},
	}
	parts := []component{goComponent("std", p.Info.GoVersion[len("go"):])}
	for _, m := range externalModules(p.Info) {
		parts = append(parts, moduleComponent(m))
	}
	refs := make([]string, 0, len(parts))
	for _, c := range parts {
		refs = append(refs, c.Ref)
	}

	b := bill{
		BOMFormat:    "CycloneDX",
		SpecVersion:  "1.6",
		SerialNumber: serialNumber(digest),
		Version:      1,
		Metadata: billMetadata{
			Timestamp: s.Time.Format(time.RFC3339),
			Component: own,
			Properties: []property{
				{"commit", s.Commit},
				{"target", p.Target.String()},
			},
		},
		Components:   parts,
		Dependencies: []dependency{{own.Ref, refs}},
	}
	text, err := json.MarshalIndent(b, "", "  ")
	return append(text, '\n'), err
}

func moduleComponent(m *debug.Module) component {
	if m.Replace != nil {
		m = m.Replace
	}
	return goComponent(m.Path, m.Version)
}

func goComponent(path, version string) component {
	address := "pkg:golang/" + (&url.URL{Path: path}).EscapedPath() + "@" + url.QueryEscape(version)
	return component{Type: "library", Ref: address, Name: path, Version: version, PURL: address}
}

// serialNumber returns a UUID that follows from the program, so that two builds
// have the same one (RFC 9562, version 8).
func serialNumber(digest string) string {
	sum := sha256.Sum256([]byte("atelier bill of materials " + digest))
	sum[6] = sum[6]&0x0f | 0x80
	sum[8] = sum[8]&0x3f | 0x80
	return fmt.Sprintf("urn:uuid:%x-%x-%x-%x-%x", sum[0:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16])
}
