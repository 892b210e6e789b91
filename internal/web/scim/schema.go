package scim

import "strings"

// attribute is one part of a resource (RFC 7643 section 2). What the zero value
// says is what most are: a text that can be read and written, in any case.
type attribute struct {
	name       string
	kind       string // text where it is ""
	many       bool
	required   bool
	exact      bool   // letters in another case are other letters
	mutability string // readWrite where it is ""
	returned   string // default where it is ""
	unique     string // none where it is ""
	canon      []string
	refs       []string
	sub        []attribute
	about      string
}

// The kinds of attributes.
const (
	boolean   = "boolean"
	complexes = "complex"
	dateTime  = "dateTime"
	reference = "reference"
)

const (
	readOnly  = "readOnly"
	immutable = "immutable"
	onRequest = "request"
)

// schema is a list of attributes with a name.
type schema struct {
	id, name, about string
	attributes      []attribute
}

// kind is a type of resources.
type kind struct {
	name, endpoint, about string
	core                  schema
	extension             *schema
}

// The names of the messages.
const (
	listResponse  = "urn:ietf:params:scim:api:messages:2.0:ListResponse"
	patchOp       = "urn:ietf:params:scim:api:messages:2.0:PatchOp"
	searchRequest = "urn:ietf:params:scim:api:messages:2.0:SearchRequest"
	errorMessage  = "urn:ietf:params:scim:api:messages:2.0:Error"
)

// common are the attributes of all resources (RFC 7643 section 3.1), which no
// schema lists.
var common = []attribute{
	{name: "id", exact: true, mutability: readOnly, returned: "always"},
	{name: "externalId", exact: true},
	{name: "meta", kind: complexes, mutability: readOnly, sub: []attribute{
		{name: "resourceType", exact: true, mutability: readOnly}, {name: "created", kind: dateTime, mutability: readOnly},
		{name: "lastModified", kind: dateTime, mutability: readOnly}, {name: "location", kind: reference, exact: true, mutability: readOnly},
	}},
}

// several makes an attribute of values with a type, as most with many values are
// (RFC 7643 section 2.4).
func several(name, about string, value attribute, types ...string) attribute {
	value.name = "value"
	return attribute{
		name:  name,
		kind:  complexes,
		many:  true,
		about: about,
		sub: []attribute{
			value, {name: "display"}, {name: "type", canon: types}, {name: "primary", kind: boolean},
		},
	}
}

var users = kind{
	name:     "User",
	endpoint: "/Users",
	about:    "A member of the company, or somebody who was one.",
	core: schema{id: "urn:ietf:params:scim:schemas:core:2.0:User", name: "User", about: "A member of the company, or somebody who was one.", attributes: []attribute{
		{name: "userName", required: true, unique: "server", about: "The mail address, in a domain that the company has verified."},
		{name: "name", kind: complexes, about: "The parts of the name.", sub: []attribute{
			{name: "formatted"}, {name: "familyName"}, {name: "givenName"}, {name: "middleName"}, {name: "honorificPrefix"}, {name: "honorificSuffix"},
		}},
		{name: "displayName"}, {name: "nickName"},
		{name: "profileUrl", kind: reference, refs: []string{"external"}, exact: true},
		{name: "title"}, {name: "userType"}, {name: "preferredLanguage"}, {name: "locale"}, {name: "timezone"},
		{name: "active", kind: boolean, required: true, about: "Whether they are a member of the company. True for a new user where nothing is said."},
		several("emails", "Mail addresses as the directory has them. The account's is userName.", attribute{}, "work", "home", "other"),
		several("phoneNumbers", "Phone numbers.", attribute{}, "work", "home", "mobile", "fax", "pager", "other"),
		several("ims", "Addresses for instant messages.", attribute{}),
		several("photos", "Addresses of pictures.", attribute{kind: reference, refs: []string{"external"}, exact: true}, "photo", "thumbnail"),
		{
			name:  "addresses",
			kind:  complexes,
			many:  true,
			about: "Postal addresses.",
			sub: []attribute{
				{name: "formatted"}, {name: "streetAddress"}, {name: "locality"}, {name: "region"}, {name: "postalCode"}, {name: "country"},
				{name: "type", canon: []string{"work", "home", "other"}}, {name: "primary", kind: boolean},
			},
		},
		{
			name:       "groups",
			kind:       complexes,
			many:       true,
			mutability: readOnly,
			about:      "The teams that they are in.",
			sub: []attribute{
				{name: "value", exact: true, mutability: readOnly}, {
					name:       "$ref",
					kind:       reference,
					refs:       []string{"Group"},
					exact:      true,
					mutability: readOnly,
				},
				{name: "display", mutability: readOnly}, {name: "type", canon: []string{"direct"}, mutability: readOnly},
			},
		},
		several("entitlements", "Kept, and of no effect.", attribute{}),
		several("roles", "Kept, and of no effect: roles are given in Atelier.", attribute{}),
	}},
	extension: &schema{id: "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User", name: "EnterpriseUser", about: "What companies say about their people.", attributes: []attribute{
		{name: "employeeNumber"}, {name: "costCenter"}, {name: "organization"}, {name: "division"}, {name: "department"},
		{name: "manager", kind: complexes, sub: []attribute{
			{name: "value", exact: true}, {name: "$ref", kind: reference, refs: []string{"User"}, exact: true}, {name: "displayName", mutability: readOnly},
		}},
	}},
}

var groups = kind{
	name: "Group", endpoint: "/Groups", about: "A team of the company.",
	core: schema{id: "urn:ietf:params:scim:schemas:core:2.0:Group", name: "Group", about: "A team of the company.", attributes: []attribute{
		{name: "displayName", required: true, exact: true, about: "The name of the team."},
		{
			name:  "members",
			kind:  complexes,
			many:  true,
			about: "Who is in the team.",
			sub: []attribute{
				{name: "value", exact: true, mutability: immutable, about: "The id of a user."},
				{
					name:       "$ref",
					kind:       reference,
					refs:       []string{"User"},
					exact:      true,
					mutability: immutable,
				},
				{name: "type", canon: []string{"User"}, mutability: immutable},
				{name: "display", mutability: readOnly, returned: onRequest, about: "The mail address."},
			},
		},
	}},
}

var kinds = []*kind{&users, &groups}

// find gives the attribute of a name, which has no case (RFC 7643 section 2.1).
func find(all []attribute, name string) *attribute {
	for i := range all {
		if strings.EqualFold(all[i].name, name) {
			return &all[i]
		}
	}
	return nil
}

// attribute finds one of the core or common attributes.
func (k *kind) attribute(name string) *attribute {
	if a := find(k.core.attributes, name); a != nil {
		return a
	}
	return find(common, name)
}

func or(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

// asDocument writes an attribute for /Schemas (RFC 7643 section 7).
func (a attribute) asDocument() object {
	doc := object{
		"name": a.name, "type": or(a.kind, "string"), "multiValued": a.many, "description": or(a.about, "As RFC 7643 says."), "required": a.required,
		"mutability": or(a.mutability, "readWrite"), "returned": or(a.returned, "default"),
	}
	if a.kind != boolean && a.kind != complexes {
		doc["caseExact"] = a.exact || a.kind == dateTime
		doc["uniqueness"] = or(a.unique, "none")
	}
	if len(a.canon) > 0 {
		doc["canonicalValues"] = a.canon
	}
	if len(a.refs) > 0 {
		doc["referenceTypes"] = a.refs
	}
	if len(a.sub) > 0 {
		doc["subAttributes"] = asDocuments(a.sub)
	}
	return doc
}

func asDocuments(all []attribute) []any {
	docs := make([]any, len(all))
	for i, a := range all {
		docs[i] = a.asDocument()
	}
	return docs
}

func (s schema) asDocument(base string) object {
	return object{
		"schemas": []string{"urn:ietf:params:scim:schemas:core:2.0:Schema"}, "id": s.id, "name": s.name, "description": s.about,
		"attributes": asDocuments(s.attributes), "meta": object{"resourceType": "Schema", "location": base + "/Schemas/" + s.id},
	}
}

func (k *kind) asDocument(base string) object {
	doc := object{
		"schemas": []string{"urn:ietf:params:scim:schemas:core:2.0:ResourceType"}, "id": k.name, "name": k.name, "endpoint": k.endpoint,
		"description": k.about, "schema": k.core.id, "meta": object{"resourceType": "ResourceType", "location": base + "/ResourceTypes/" + k.name},
	}
	if k.extension != nil {
		doc["schemaExtensions"] = []any{object{"schema": k.extension.id, "required": false}}
	}
	return doc
}

// providerConfig says what is supported (RFC 7643 section 5).
func providerConfig(base string) object {
	off := object{"supported": false}
	return object{
		"schemas": []string{"urn:ietf:params:scim:schemas:core:2.0:ServiceProviderConfig"},
		"patch":   object{"supported": true}, "bulk": object{"supported": false, "maxOperations": 0, "maxPayloadSize": 0},
		"filter": object{"supported": true, "maxResults": maxCount}, "changePassword": off, "sort": off, "etag": off,
		"authenticationSchemes": []any{object{
			"type": "oauthbearertoken", "name": "Bearer token", "description": "The token of the company's directory, in the header Authorization.",
			"specUri": "https://www.rfc-editor.org/info/rfc6750", "primary": true,
		}},
		"meta": object{"resourceType": "ServiceProviderConfig", "location": base + "/ServiceProviderConfig"},
	}
}
