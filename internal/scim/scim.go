// Package scim serves SCIM 2.0 (RFC 7643, RFC 7644).
package scim

import _ "github.com/scim2/filter-parser/v2" // to be used
