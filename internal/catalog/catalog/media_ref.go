package catalog

import (
	"fmt"
	"regexp"
	"strconv"

	"atelier/internal/base/ids"
)

// RefKind says how an input refers to its file: sent with the request, an
// upload, or an item of the library.
type RefKind string

// The kinds of references, as named in the API.
const (
	Multipart  RefKind = "MULTIPART"
	UploadRef  RefKind = "UPLOAD_REF"
	LibraryRef RefKind = "LIBRARY_REF"
)

// refDetail is the property that a reference has in addition to its kind.
var refDetail = map[RefKind]string{Multipart: "file_index", UploadRef: "id", LibraryRef: "id"}

// Messages for references to missing files. Package library uses the same
// messages, so that clients cannot find out which IDs exist in other accounts.
const (
	NoSuchUpload      = "There is no such upload."
	NoSuchLibraryItem = "There is no such library item."
)

// Ref is a reference of an input field to a file.
type Ref struct {
	Kind      RefKind
	ID        string // set for UPLOAD_REF and LIBRARY_REF
	FileIndex int    // set for MULTIPART

	Field     string   // key of the field
	List      bool     // the field accepts several files
	Index     int      // index in the list of the field
	Path      string   // path for error messages, such as "inputs.pictures.2"
	Accept    []string // accepted MIME types; empty if all of MediaType are accepted
	MediaType string   // accepted media type, one of outputTypes
}

// mediaOf is the accepted media type of each field type.
var mediaOf = map[FieldType]string{"IMG": "IMG", "IMGS": "IMG", "VIDEO": "VID", "AUDIO": "AUDIO", "ASSET_3D": "ASSET_3D"}

// libraryIDPattern matches the ID of a result in the library: the library ID of
// its run, a colon, and a UUID.
var libraryIDPattern = regexp.MustCompile(`^[0-9A-Za-z]{20}:[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`)

func (f *inputParser) parseReferences(l *Field, path string, value any) {
	list, ok := value.([]any)
	if !ok {
		f.addProblem(path, "Must be a list of references.")
		return
	}
	if limit := l.Display.MaxItems; limit > 0 && int64(len(list)) > limit {
		f.addProblem(path, fmt.Sprintf("Must have at most %d references.", limit))
	}

	for i, item := range list {
		f.parseReference(l, path+"."+strconv.Itoa(i), i, item)
	}
}

func (f *inputParser) parseReference(l *Field, path string, index int, value any) {
	given, ok := value.(map[string]any)
	if !ok {
		f.addProblem(path, toSentence(l.CheckValue(value)))
		return
	}

	kind, _ := given["kind"].(string)
	r := Ref{
		Kind:      RefKind(kind),
		Field:     l.Key,
		List:      l.Type == "IMGS",
		Index:     index,
		Path:      path,
		Accept:    l.Display.Accept,
		MediaType: mediaOf[l.Type],
	}
	detail, known := refDetail[r.Kind]
	if !known {
		f.addProblem(path, "The kind of a reference must be MULTIPART, UPLOAD_REF or LIBRARY_REF.")
		return
	}

	for _, name := range sortedKeys(given) {
		if name != "kind" && name != detail {
			f.addProblem(path+"."+printableName(name), "A reference of this kind does not have this property.")
		}
	}

	var problem string
	if r.Kind == Multipart {
		r.FileIndex, problem = f.claimFilePart(given[detail])
	} else {
		r.ID, problem = refID(r.Kind, given[detail])
	}
	if problem != "" {
		f.addProblem(path, problem)
		return
	}

	f.Refs = append(f.Refs, r)
}

// claimFilePart validates the index of a file that was sent with the request,
// and marks the file as used. A file can be used only once.
func (f *inputParser) claimFilePart(index any) (i int, problem string) {
	if f.PriceOnly {
		return 0, "Files can be sent only when the run is started. Omit this input here."
	}

	n, ok := toInteger(index)
	switch {
	case !ok:
		return 0, "The file_index of a reference must be a whole number."
	case n < 0 || n >= int64(f.Files):
		return 0, "There is no such file part."
	case f.claimedParts[n]:
		return 0, "This file part is used twice."
	}

	f.claimedParts[n] = true
	return int(n), ""
}

func refID(kind RefKind, id any) (s, problem string) {
	s, _ = id.(string)
	switch {
	case kind == UploadRef && !ids.Valid(s):
		return "", NoSuchUpload
	case kind == LibraryRef && !libraryIDPattern.MatchString(s):
		return "", NoSuchLibraryItem
	}
	return s, ""
}
