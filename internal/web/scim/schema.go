package scim

import "strings"

// attribute describes an attribute of a resource (RFC 7643 section 2). The
// zero value is the most common kind: a string, readable and writable,
// compared without regard to case.
type attribute struct {
	name            string
	dataType        string // "" means string
	multiValued     bool
	required        bool
	caseExact       bool   // comparisons distinguish upper and lower case
	mutability      string // "" means readWrite
	returned        string // "" means default
	uniqueness      string // "" means none
	canonicalValues []string
	referenceTypes  []string
	sub             []attribute
	description     string
}

// Data types of SCIM attributes. Strings have the empty type.
const (
	booleanType   = "boolean"
	complexType   = "complex"
	dateTimeType  = "dateTime"
	referenceType = "reference"
)

const (
	readOnly  = "readOnly"
	immutable = "immutable"
	onRequest = "request"
)

// schema is a SCIM schema: a named list of attributes.
type schema struct {
	id, name, description string
	attributes            []attribute
}

// resourceType describes a type of SCIM resource: users or groups.
type resourceType struct {
	name, endpoint, description string
	core                        schema
	extension                   *schema
}

// URNs of SCIM messages.
const (
	listResponse  = "urn:ietf:params:scim:api:messages:2.0:ListResponse"
	patchOp       = "urn:ietf:params:scim:api:messages:2.0:PatchOp"
	searchRequest = "urn:ietf:params:scim:api:messages:2.0:SearchRequest"
	errorMessage  = "urn:ietf:params:scim:api:messages:2.0:Error"
)

// commonAttributes are the attributes that all resources have (RFC 7643
// section 3.1). The schemas do not list them.
var commonAttributes = []attribute{
	{name: "id", caseExact: true, mutability: readOnly, returned: "always"},
	{name: "externalId", caseExact: true},
	{name: "meta", dataType: complexType, mutability: readOnly, sub: []attribute{
		{name: "resourceType", caseExact: true, mutability: readOnly}, {name: "created", dataType: dateTimeType, mutability: readOnly},
		{name: "lastModified", dataType: dateTimeType, mutability: readOnly}, {name: "location", dataType: referenceType, caseExact: true, mutability: readOnly},
	}},
}

// newTypedAttribute returns a multi-valued attribute whose values have the
// usual sub-attributes value, display, type and primary (RFC 7643 section
// 2.4).
func newTypedAttribute(name, about string, value attribute, types ...string) attribute {
	value.name = "value"
	return attribute{
		name:        name,
		dataType:    complexType,
		multiValued: true,
		description: about,
		sub: []attribute{
			value, {name: "display"}, {name: "type", canonicalValues: types}, {name: "primary", dataType: booleanType},
		},
	}
}

var userType = resourceType{
	name:        "User",
	endpoint:    "/Users",
	description: "A current or former member of the company.",
	core: schema{id: "urn:ietf:params:scim:schemas:core:2.0:User", name: "User", description: "A current or former member of the company.", attributes: []attribute{
		{name: "userName", required: true, uniqueness: "server", description: "The e-mail address, in a domain that the company has verified."},
		{name: "name", dataType: complexType, description: "The parts of the name.", sub: []attribute{
			{name: "formatted"}, {name: "familyName"}, {name: "givenName"}, {name: "middleName"}, {name: "honorificPrefix"}, {name: "honorificSuffix"},
		}},
		{name: "displayName"}, {name: "nickName"},
		{name: "profileUrl", dataType: referenceType, referenceTypes: []string{"external"}, caseExact: true},
		{name: "title"}, {name: "userType"}, {name: "preferredLanguage"}, {name: "locale"}, {name: "timezone"},
		{name: "active", dataType: booleanType, required: true, description: "Whether the user is a member of the company. Defaults to true for a new user."},
		newTypedAttribute("emails", "E-mail addresses from the identity provider. The address of the account is userName.", attribute{}, "work", "home", "other"),
		newTypedAttribute("phoneNumbers", "Phone numbers.", attribute{}, "work", "home", "mobile", "fax", "pager", "other"),
		newTypedAttribute("ims", "Addresses for instant messages.", attribute{}),
		newTypedAttribute("photos", "Addresses of pictures.", attribute{dataType: referenceType, referenceTypes: []string{"external"}, caseExact: true}, "photo", "thumbnail"),
		{
			name:        "addresses",
			dataType:    complexType,
			multiValued: true,
			description: "Postal addresses.",
			sub: []attribute{
				{name: "formatted"}, {name: "streetAddress"}, {name: "locality"}, {name: "region"}, {name: "postalCode"}, {name: "country"},
				{name: "type", canonicalValues: []string{"work", "home", "other"}}, {name: "primary", dataType: booleanType},
			},
		},
		{
			name:        "groups",
			dataType:    complexType,
			multiValued: true,
			mutability:  readOnly,
			description: "The teams of the user.",
			sub: []attribute{
				{name: "value", caseExact: true, mutability: readOnly}, {
					name:           "$ref",
					dataType:       referenceType,
					referenceTypes: []string{"Group"},
					caseExact:      true,
					mutability:     readOnly,
				},
				{name: "display", mutability: readOnly}, {name: "type", canonicalValues: []string{"direct"}, mutability: readOnly},
			},
		},
		newTypedAttribute("entitlements", "Stored without effect.", attribute{}),
		newTypedAttribute("roles", "Stored without effect: roles are assigned in Atelier.", attribute{}),
	}},
	extension: &schema{id: "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User", name: "EnterpriseUser", description: "Attributes of employees.", attributes: []attribute{
		{name: "employeeNumber"}, {name: "costCenter"}, {name: "organization"}, {name: "division"}, {name: "department"},
		{name: "manager", dataType: complexType, sub: []attribute{
			{name: "value", caseExact: true}, {name: "$ref", dataType: referenceType, referenceTypes: []string{"User"}, caseExact: true}, {name: "displayName", mutability: readOnly},
		}},
	}},
}

var groupType = resourceType{
	name: "Group", endpoint: "/Groups", description: "A team of the company.",
	core: schema{id: "urn:ietf:params:scim:schemas:core:2.0:Group", name: "Group", description: "A team of the company.", attributes: []attribute{
		{name: "displayName", required: true, caseExact: true, description: "The name of the team."},
		{
			name:        "members",
			dataType:    complexType,
			multiValued: true,
			description: "The members of the team.",
			sub: []attribute{
				{name: "value", caseExact: true, mutability: immutable, description: "The id of a user."},
				{
					name:           "$ref",
					dataType:       referenceType,
					referenceTypes: []string{"User"},
					caseExact:      true,
					mutability:     immutable,
				},
				{name: "type", canonicalValues: []string{"User"}, mutability: immutable},
				{name: "display", mutability: readOnly, returned: onRequest, description: "The e-mail address."},
			},
		},
	}},
}

var resourceTypes = []*resourceType{&userType, &groupType}

// findAttribute finds an attribute by its name, which is case-insensitive (RFC
// 7643 section 2.1). It returns nil if there is none.
func findAttribute(all []attribute, name string) *attribute {
	for i := range all {
		if strings.EqualFold(all[i].name, name) {
			return &all[i]
		}
	}
	return nil
}

// coreAttribute finds an attribute of the core schema or a common attribute.
// It returns nil if there is none.
func (k *resourceType) coreAttribute(name string) *attribute {
	if a := findAttribute(k.core.attributes, name); a != nil {
		return a
	}
	return findAttribute(commonAttributes, name)
}

func textOr(s, defaultText string) string {
	if s == "" {
		return defaultText
	}
	return s
}

// asDocument returns an attribute as /Schemas describes it (RFC 7643 section 7).
func (a attribute) asDocument() object {
	doc := object{
		"name":        a.name,
		"type":        textOr(a.dataType, "string"),
		"multiValued": a.multiValued,
		"description": textOr(a.description, "As defined in RFC 7643."),
		"required":    a.required,
		"mutability":  textOr(a.mutability, "readWrite"),
		"returned":    textOr(a.returned, "default"),
	}
	if a.dataType != booleanType && a.dataType != complexType {
		doc["caseExact"] = a.caseExact || a.dataType == dateTimeType
		doc["uniqueness"] = textOr(a.uniqueness, "none")
	}
	if len(a.canonicalValues) > 0 {
		doc["canonicalValues"] = a.canonicalValues
	}
	if len(a.referenceTypes) > 0 {
		doc["referenceTypes"] = a.referenceTypes
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
		"schemas":     []string{"urn:ietf:params:scim:schemas:core:2.0:Schema"},
		"id":          s.id,
		"name":        s.name,
		"description": s.description,
		"attributes":  asDocuments(s.attributes),
		"meta":        object{"resourceType": "Schema", "location": base + "/Schemas/" + s.id},
	}
}

func (k *resourceType) asDocument(base string) object {
	doc := object{
		"schemas":     []string{"urn:ietf:params:scim:schemas:core:2.0:ResourceType"},
		"id":          k.name,
		"name":        k.name,
		"endpoint":    k.endpoint,
		"description": k.description,
		"schema":      k.core.id,
		"meta":        object{"resourceType": "ResourceType", "location": base + "/ResourceTypes/" + k.name},
	}
	if k.extension != nil {
		doc["schemaExtensions"] = []any{object{"schema": k.extension.id, "required": false}}
	}

	return doc
}

// providerConfig returns the document that describes which SCIM features are
// supported (RFC 7643 section 5).
func providerConfig(base string) object {
	unsupported := object{"supported": false}
	return object{
		"schemas":        []string{"urn:ietf:params:scim:schemas:core:2.0:ServiceProviderConfig"},
		"patch":          object{"supported": true},
		"bulk":           object{"supported": false, "maxOperations": 0, "maxPayloadSize": 0},
		"filter":         object{"supported": true, "maxResults": maxCount},
		"changePassword": unsupported,
		"sort":           unsupported,
		"etag":           unsupported,
		"authenticationSchemes": []any{object{
			"type":        "oauthbearertoken",
			"name":        "Bearer token",
			"description": "The company's SCIM token, in the header Authorization.",
			"specUri":     "https://www.rfc-editor.org/info/rfc6750",
			"primary":     true,
		}},
		"meta": object{"resourceType": "ServiceProviderConfig", "location": base + "/ServiceProviderConfig"},
	}
}
