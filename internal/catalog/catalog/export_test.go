package catalog

import "errors"

// The limits that tests go to.
const (
	MaxProblems = maxProblems
	MaxResults  = maxResults
	MaxTextLen  = maxTextLen
	MaxTokens   = maxTokens
	MaxVersions = maxVersions
)

// ToolOf reads one manifest and nothing beside it. Pictures are not looked for.
func ToolOf(manifest []byte) (*Tool, error) {
	r := &manifestReader{file: "manifest", storeAsset: func(string) (Asset, error) { return "", nil }}
	t := r.readTool(r.parseDocument(manifest), nil)
	if len(r.problems) > 0 {
		return nil, errors.New(r.problems[0].String())
	}
	return t, nil
}

// HashOf gives a definition's hash.
func HashOf(definition string) string { return hashOf(definition) }
