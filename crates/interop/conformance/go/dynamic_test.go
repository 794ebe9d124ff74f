package conformance

import (
	"context"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/scale"
)

// define creates a kind for one test, and waits until it is established.
func define(t *testing.T, at fixture) schema.GroupVersionResource {
	t.Helper()
	group := "g" + random() + ".conformance.example.com"
	resource := schema.GroupVersionResource{Group: group, Version: "v1", Resource: "boxes"}
	client, err := apiextensions.NewForConfig(at.config)
	check(t, err)
	definitions := client.ApiextensionsV1().CustomResourceDefinitions()
	one := float64(1)
	made, err := definitions.Create(at.ctx, &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "boxes." + group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: group, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "boxes", Singular: "box", Kind: "Box", ShortNames: []string{"bx"}},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Subresources: &apiextensionsv1.CustomResourceSubresources{
					Status: &apiextensionsv1.CustomResourceSubresourceStatus{},
					Scale:  &apiextensionsv1.CustomResourceSubresourceScale{SpecReplicasPath: ".spec.size", StatusReplicasPath: ".status.size"},
				},
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type: "object",
					Properties: map[string]apiextensionsv1.JSONSchemaProps{
						"spec": {Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{
							"size":  {Type: "integer", Minimum: &one},
							"label": {Type: "string", Default: &apiextensionsv1.JSON{Raw: []byte(`"plain"`)}},
						}},
						"status": {Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"size": {Type: "integer"}}},
					},
				}},
			}},
		},
	}, metav1.CreateOptions{})
	check(t, err)
	t.Cleanup(func() {
		// The context of the test has ended.
		ctx, cancel := context.WithTimeout(context.Background(), timeout)
		defer cancel()
		if err := definitions.Delete(ctx, made.Name, metav1.DeleteOptions{}); err != nil {
			t.Errorf("the definition is not deleted: %v", err)
		}
	})
	eventually(t, "the kind is established", func() bool {
		found, err := definitions.Get(at.ctx, made.Name, metav1.GetOptions{})
		if err != nil {
			return false
		}
		for _, condition := range found.Status.Conditions {
			if condition.Type == apiextensionsv1.Established && condition.Status == apiextensionsv1.ConditionTrue {
				return true
			}
		}
		return false
	})
	return resource
}

func box(resource schema.GroupVersionResource, name string, size int64) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": resource.GroupVersion().String(), "kind": "Box",
		"metadata": map[string]any{"name": name}, "spec": map[string]any{"size": size},
	}}
}

func TestCustomKindsByTheDynamicClient(t *testing.T) {
	at := start(t)
	resource := define(t, at)
	client, err := dynamic.NewForConfig(at.config)
	check(t, err)
	boxes := client.Resource(resource).Namespace(at.namespace)
	var made *unstructured.Unstructured
	eventually(t, "the kind is served", func() bool {
		made, err = boxes.Create(at.ctx, box(resource, "a", 2), metav1.CreateOptions{})
		return err == nil
	})
	label, _, _ := unstructured.NestedString(made.Object, "spec", "label")
	require(t, label == "plain", "no default: %v", made.Object)
	_, err = boxes.Create(at.ctx, box(resource, "b", 0), metav1.CreateOptions{})
	require(t, errors.IsInvalid(err), "%v", err)

	factory := dynamicinformer.NewFilteredDynamicSharedInformerFactory(client, 0, at.namespace, nil)
	informer := factory.ForResource(resource)
	informer.Informer()
	factory.Start(at.ctx.Done())
	factory.WaitForCacheSync(at.ctx.Done())

	applied, err := boxes.Apply(at.ctx, "c", box(resource, "c", 3), metav1.ApplyOptions{FieldManager: "conformance"})
	check(t, err)
	check(t, unstructured.SetNestedField(applied.Object, int64(3), "status", "size"))
	_, err = boxes.UpdateStatus(at.ctx, applied, metav1.UpdateOptions{})
	check(t, err)
	eventually(t, "the informer has the status", func() bool {
		found, err := informer.Lister().ByNamespace(at.namespace).Get("c")
		if err != nil {
			return false
		}
		size, _, _ := unstructured.NestedInt64(found.(*unstructured.Unstructured).Object, "status", "size")
		return size == 3
	})
}

// kubectl and helm find kinds by name, and their scale, by discovery.
func TestKindsAreFoundByDiscovery(t *testing.T) {
	at := start(t)
	resource := define(t, at)
	discovery := memory.NewMemCacheClient(at.client.Discovery())
	mapper := restmapper.NewShortcutExpander(restmapper.NewDeferredDiscoveryRESTMapper(discovery), discovery, nil)
	var found schema.GroupVersionResource
	eventually(t, "the kind is discovered", func() bool {
		var err error
		discovery.Invalidate()
		found, err = mapper.ResourceFor(schema.GroupVersionResource{Group: resource.Group, Resource: "bx"})
		return err == nil
	})
	require(t, found == resource, "%v", found)
	mapping, err := mapper.RESTMapping(schema.GroupKind{Group: "apps", Kind: "Deployment"})
	check(t, err)
	require(t, mapping.Resource.Version == "v1", "%v", mapping.Resource)
	_, lists, err := at.client.Discovery().ServerGroupsAndResources()
	check(t, err)
	require(t, len(lists) > 10, "%d groups", len(lists))
	documents, err := at.client.Discovery().OpenAPIV3().Paths()
	check(t, err)
	require(t, documents["apis/apps/v1"] != nil, "no document of apps/v1: %v", documents)

	client, err := dynamic.NewForConfig(at.config)
	check(t, err)
	_, err = client.Resource(resource).Namespace(at.namespace).Create(at.ctx, box(resource, "a", 2), metav1.CreateOptions{})
	check(t, err)
	kinds := scale.NewDiscoveryScaleKindResolver(at.client.Discovery())
	scales, err := scale.NewForConfig(at.config, mapper, dynamic.LegacyAPIPathResolverFunc, kinds)
	check(t, err)
	scaled, err := scales.Scales(at.namespace).Get(at.ctx, resource.GroupResource(), "a", metav1.GetOptions{})
	check(t, err)
	require(t, scaled.Spec.Replicas == 2, "%v", scaled.Spec)
	scaled.Spec.Replicas = 5
	scaled, err = scales.Scales(at.namespace).Update(at.ctx, resource.GroupResource(), scaled, metav1.UpdateOptions{})
	check(t, err)
	require(t, scaled.Spec.Replicas == 5, "%v", scaled.Spec)
}
