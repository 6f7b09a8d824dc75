package main

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The kind as controller-gen would write it: typed, with deep copies by hand.

var groupVersion = schema.GroupVersion{Group: "bench.trimtab.dev", Version: "v1"}

type Gadget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              GadgetSpec   `json:"spec"`
	Status            GadgetStatus `json:"status,omitempty"`
}

type GadgetSpec struct {
	Size        string            `json:"size,omitempty"`
	Replicas    int32             `json:"replicas"`
	Sequence    string            `json:"sequence,omitempty"`
	Enabled     bool              `json:"enabled,omitempty"`
	Description string            `json:"description,omitempty"`
	Endpoints   []Endpoint        `json:"endpoints,omitempty"`
	Tags        map[string]string `json:"tags,omitempty"`
}

type Endpoint struct {
	Name     string `json:"name"`
	Host     string `json:"host,omitempty"`
	Port     int32  `json:"port"`
	Protocol string `json:"protocol,omitempty"`
}

type GadgetStatus struct {
	Observed string `json:"observed,omitempty"`
}

type GadgetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Gadget `json:"items"`
}

func (in *Gadget) copyInto(out *Gadget) {
	*out = *in
	in.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	if in.Spec.Endpoints != nil {
		out.Spec.Endpoints = make([]Endpoint, len(in.Spec.Endpoints))
		copy(out.Spec.Endpoints, in.Spec.Endpoints)
	}
	if in.Spec.Tags != nil {
		out.Spec.Tags = make(map[string]string, len(in.Spec.Tags))
		for key, value := range in.Spec.Tags {
			out.Spec.Tags[key] = value
		}
	}
}

func (in *Gadget) DeepCopy() *Gadget {
	out := new(Gadget)
	in.copyInto(out)
	return out
}

func (in *Gadget) DeepCopyObject() runtime.Object { return in.DeepCopy() }

func (in *GadgetList) DeepCopyObject() runtime.Object {
	out := &GadgetList{TypeMeta: in.TypeMeta, ListMeta: *in.ListMeta.DeepCopy(), Items: make([]Gadget, len(in.Items))}
	for i := range in.Items {
		in.Items[i].copyInto(&out.Items[i])
	}
	return out
}

func addToScheme(scheme *runtime.Scheme) {
	scheme.AddKnownTypes(groupVersion, &Gadget{}, &GadgetList{})
	metav1.AddToGroupVersion(scheme, groupVersion)
}
