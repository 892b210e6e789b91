// Package openapi holds the contract of /api/v2.
package openapi

import _ "embed"

// Document is the contract as it is written, in YAML.
//
//go:embed openapi.yaml
var Document []byte
