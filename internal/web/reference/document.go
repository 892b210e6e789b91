package reference

import (
	"fmt"
	"slices"

	"go.yaml.in/yaml/v3"
)

// document and the types below are the parts of OpenAPI 3.1 that the page
// shows, by their names there. What may be a reference stays a node until read
// follows it; a schema keeps its reference, which the page shows as a link.
type document struct {
	OpenAPI string `yaml:"openapi"`
	Info    struct {
		Title       string `yaml:"title"`
		Version     string `yaml:"version"`
		Summary     string `yaml:"summary"`
		Description string `yaml:"description"`
	} `yaml:"info"`
	Servers    []server           `yaml:"servers"`
	Security   []requirement      `yaml:"security"`
	Tags       []tag              `yaml:"tags"`
	Paths      ordered[yaml.Node] `yaml:"paths"`
	Webhooks   ordered[yaml.Node] `yaml:"webhooks"`
	Components struct {
		Schemas         ordered[*schema]   `yaml:"schemas"`
		Responses       ordered[yaml.Node] `yaml:"responses"`
		SecuritySchemes ordered[yaml.Node] `yaml:"securitySchemes"`
	} `yaml:"components"`
}

type server struct {
	URL       string `yaml:"url"`
	Variables ordered[struct {
		Default string `yaml:"default"`
	}] `yaml:"variables"`
}

// requirement maps the security schemes that are needed together to scopes.
type requirement = ordered[[]string]

type tag struct {
	Name        string `yaml:"name"`
	Description string `yaml:"description"`
}

type pathItem struct {
	Parameters []yaml.Node
	Servers    []server
	Operations ordered[operation] // by method, as the document orders them
}

var methods = []string{"get", "put", "post", "delete", "options", "head", "patch", "trace"}

func (p *pathItem) UnmarshalYAML(n *yaml.Node) error {
	var all ordered[yaml.Node]
	if err := n.Decode(&all); err != nil {
		return err
	}
	for _, e := range all {
		var err error
		switch {
		case e.Key == "parameters":
			err = e.Value.Decode(&p.Parameters)
		case e.Key == "servers":
			err = e.Value.Decode(&p.Servers)
		case slices.Contains(methods, e.Key):
			var o operation
			err = e.Value.Decode(&o)
			p.Operations = append(p.Operations, entry[operation]{e.Key, o})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

type operation struct {
	OperationID string             `yaml:"operationId"`
	Tags        []string           `yaml:"tags"`
	Summary     string             `yaml:"summary"`
	Description string             `yaml:"description"`
	Deprecated  bool               `yaml:"deprecated"`
	Parameters  []yaml.Node        `yaml:"parameters"`
	RequestBody yaml.Node          `yaml:"requestBody"`
	Responses   ordered[yaml.Node] `yaml:"responses"`
	Security    *[]requirement     `yaml:"security"` // nil means the document's
	Servers     []server           `yaml:"servers"`
}

// parameter is a header, too, which has no name and place of its own.
type parameter struct {
	Name        string             `yaml:"name"`
	In          string             `yaml:"in"`
	Description string             `yaml:"description"`
	Required    bool               `yaml:"required"`
	Deprecated  bool               `yaml:"deprecated"`
	Style       string             `yaml:"style"`
	Explode     *bool              `yaml:"explode"`
	Schema      *schema            `yaml:"schema"`
	Content     ordered[mediaType] `yaml:"content"`
	Example     yaml.Node          `yaml:"example"`
	Examples    ordered[yaml.Node] `yaml:"examples"`
}

type requestBody struct {
	Description string             `yaml:"description"`
	Required    bool               `yaml:"required"`
	Content     ordered[mediaType] `yaml:"content"`
}

type response struct {
	Description string             `yaml:"description"`
	Headers     ordered[yaml.Node] `yaml:"headers"`
	Content     ordered[mediaType] `yaml:"content"`
}

type mediaType struct {
	Schema   *schema            `yaml:"schema"`
	Example  yaml.Node          `yaml:"example"`
	Examples ordered[yaml.Node] `yaml:"examples"`
	Encoding ordered[struct {
		ContentType string `yaml:"contentType"`
	}] `yaml:"encoding"`
}

type example struct {
	Summary       string    `yaml:"summary"`
	Description   string    `yaml:"description"`
	Value         yaml.Node `yaml:"value"`
	ExternalValue string    `yaml:"externalValue"`
}

type securityScheme struct {
	Type             string        `yaml:"type"`
	Description      string        `yaml:"description"`
	Name             string        `yaml:"name"`
	In               string        `yaml:"in"`
	Scheme           string        `yaml:"scheme"`
	BearerFormat     string        `yaml:"bearerFormat"`
	OpenIDConnectURL string        `yaml:"openIdConnectUrl"`
	Flows            ordered[flow] `yaml:"flows"`
}

type flow struct {
	AuthorizationURL       string          `yaml:"authorizationUrl"`
	DeviceAuthorizationURL string          `yaml:"deviceAuthorizationUrl"`
	TokenURL               string          `yaml:"tokenUrl"`
	RefreshURL             string          `yaml:"refreshUrl"`
	Scopes                 ordered[string] `yaml:"scopes"`
}

type schema struct {
	// Bool is the whole of a schema that is only true or false.
	Bool *bool `yaml:"-"`

	Ref                  string           `yaml:"$ref"`
	Title                string           `yaml:"title"`
	Description          string           `yaml:"description"`
	Type                 words            `yaml:"type"`
	Format               string           `yaml:"format"`
	ContentEncoding      string           `yaml:"contentEncoding"`
	ContentMediaType     string           `yaml:"contentMediaType"`
	Enum                 []yaml.Node      `yaml:"enum"`
	Const                yaml.Node        `yaml:"const"`
	Default              yaml.Node        `yaml:"default"`
	Example              yaml.Node        `yaml:"example"`
	Examples             []yaml.Node      `yaml:"examples"`
	Pattern              string           `yaml:"pattern"`
	MinLength            yaml.Node        `yaml:"minLength"`
	MaxLength            yaml.Node        `yaml:"maxLength"`
	Minimum              yaml.Node        `yaml:"minimum"`
	Maximum              yaml.Node        `yaml:"maximum"`
	ExclusiveMinimum     yaml.Node        `yaml:"exclusiveMinimum"`
	ExclusiveMaximum     yaml.Node        `yaml:"exclusiveMaximum"`
	MultipleOf           yaml.Node        `yaml:"multipleOf"`
	Items                *schema          `yaml:"items"`
	PrefixItems          []*schema        `yaml:"prefixItems"`
	MinItems             yaml.Node        `yaml:"minItems"`
	MaxItems             yaml.Node        `yaml:"maxItems"`
	UniqueItems          bool             `yaml:"uniqueItems"`
	Properties           ordered[*schema] `yaml:"properties"`
	PatternProperties    ordered[*schema] `yaml:"patternProperties"`
	AdditionalProperties *schema          `yaml:"additionalProperties"`
	Required             []string         `yaml:"required"`
	MinProperties        yaml.Node        `yaml:"minProperties"`
	MaxProperties        yaml.Node        `yaml:"maxProperties"`
	OneOf                []*schema        `yaml:"oneOf"`
	AnyOf                []*schema        `yaml:"anyOf"`
	AllOf                []*schema        `yaml:"allOf"`
	Deprecated           bool             `yaml:"deprecated"`
	ReadOnly             bool             `yaml:"readOnly"`
	WriteOnly            bool             `yaml:"writeOnly"`
	Discriminator        struct {
		PropertyName string          `yaml:"propertyName"`
		Mapping      ordered[string] `yaml:"mapping"`
	} `yaml:"discriminator"`

	// Other holds the rarer keywords, which are shown as they are written.
	Other map[string]yaml.Node `yaml:",inline"`
}

func (s *schema) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode && n.Tag == "!!bool" {
		return n.Decode(&s.Bool)
	}
	type plain schema // without this method
	return n.Decode((*plain)(s))
}

// words is one word or a list of them.
type words []string

func (w *words) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode {
		*w = words{n.Value}
		return nil
	}
	return n.Decode((*[]string)(w))
}

// ordered is a mapping in the order it is written, which is the order its
// author wants it read.
type ordered[T any] []entry[T]

type entry[T any] struct {
	Key   string
	Value T
}

func (o *ordered[T]) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind != yaml.MappingNode {
		return fmt.Errorf("line %d: must be a mapping", n.Line)
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k := n.Content[i]
		if _, twice := o.get(k.Value); twice {
			return fmt.Errorf("line %d: %s stands here twice", k.Line, k.Value)
		}
		var v T
		if err := n.Content[i+1].Decode(&v); err != nil {
			return err
		}
		*o = append(*o, entry[T]{k.Value, v})
	}
	return nil
}

func (o ordered[T]) get(key string) (T, bool) {
	for _, e := range o {
		if e.Key == key {
			return e.Value, true
		}
	}
	var none T
	return none, false
}
