//! Lets a store answer with its index.

/// Implements searching and meaning for a store that has its index in a field of that name.
macro_rules! answers_with_index {
    ($store:ty) => {
        impl $crate::Search for $store {
            fn search(
                &self,
                request: &$crate::search::SearchRequest,
            ) -> $crate::Result<$crate::search::SearchAnswer> {
                self.index.search(request)
            }

            fn neighbours(
                &self,
                scope: &$crate::search::Scope,
                rows: &[u64],
            ) -> $crate::Result<Vec<[Option<$crate::records::StoredRecord>; 2]>> {
                self.index.neighbours(scope, rows)
            }

            fn aggregate(
                &self,
                request: &$crate::search::AggregateRequest,
            ) -> $crate::Result<$crate::search::AggregateAnswer> {
                self.index.aggregate(request)
            }

            fn select(
                &self,
                scope: &$crate::search::Scope,
                request: &$crate::records::PageRequest,
            ) -> $crate::Result<$crate::records::StoredPage> {
                self.index.select(scope, request)
            }

            fn extent(
                &self,
                scope: &$crate::search::Scope,
                latest: usize,
            ) -> $crate::Result<$crate::search::Extent> {
                self.index.extent(scope, latest)
            }

            fn passing_keys(
                &self,
                scope: &$crate::search::Scope,
            ) -> $crate::Result<std::sync::Arc<Vec<contract::key::RecordKey>>> {
                self.index.passing_keys(scope)
            }

            fn index_status(&self) -> $crate::Result<$crate::search::IndexStatus> {
                self.index.index_status()
            }

            fn settle_index(&self) -> $crate::Result<()> {
                self.index.settle_index()
            }

            fn tend_index(&self) -> $crate::Result<()> {
                self.index.tend_index()
            }

            fn rebuild_index(&self, progress: &mut dyn FnMut(u64)) -> $crate::Result<()> {
                self.index.rebuild_index(progress)
            }
        }

        impl $crate::Meaning for $store {
            fn model(&self) -> Option<$crate::meaning::ModelInfo> {
                self.index.model()
            }

            fn add_model(
                &self,
                folder: &std::path::Path,
            ) -> $crate::Result<$crate::meaning::ModelInfo> {
                self.index.add_model(folder)
            }

            fn remove_model(&self) -> $crate::Result<Option<$crate::meaning::ModelInfo>> {
                self.index.remove_model()
            }

            fn meaning_status(&self) -> $crate::Result<Option<$crate::meaning::MeaningStatus>> {
                self.index.meaning_status()
            }

            fn embed_some(&self) -> $crate::Result<bool> {
                self.index.embed_some()
            }

            fn search_by_meaning(
                &self,
                request: &$crate::search::SearchRequest,
                question: &$crate::meaning::MeaningQuestion,
            ) -> $crate::Result<$crate::search::SearchAnswer> {
                self.index.search_by_meaning(request, question)
            }
        }
    };
}

pub(crate) use answers_with_index;
