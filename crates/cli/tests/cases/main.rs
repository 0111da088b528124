//! The cases of the read contract, each written once and run on every surface: `rest::…`, `mcp::…`, `mcp_far::…`,
//! `mcp_hosted::…`, `cli::…` and `cli_far::…`. What a case asks and what it expects knows no surface; `across` then holds the surfaces against each
//! other, and `printed` runs what the commands print.
#![expect(clippy::unwrap_used, reason = "a step that fails is a failed test")]
#![expect(
    clippy::panic,
    reason = "an answer that cannot be read is a failed test that shows it"
)]

mod across;
mod agent;
mod answer;
mod ask;
mod body;
mod changing;
mod discovering;
mod fetching;
mod figuring;
mod generated;
#[path = "../harness/mod.rs"]
mod harness;
mod listing;
mod narrowing;
mod odd;
mod printed;
mod refusing;
mod searching;
mod surface;
mod surviving;
mod tool;
mod windowing;
mod world;

/// Makes one test per case and surface.
macro_rules! on_every_surface {
    ($($topic:ident::$case:ident,)+) => {
        on_every_surface!(@on rest Rest $($topic::$case,)+);
        on_every_surface!(@on mcp Mcp $($topic::$case,)+);
        on_every_surface!(@on mcp_far McpFar $($topic::$case,)+);
        on_every_surface!(@on mcp_hosted McpHosted $($topic::$case,)+);
        on_every_surface!(@on cli Cli $($topic::$case,)+);
        on_every_surface!(@on cli_far CliFar $($topic::$case,)+);
    };
    (@on $name:ident $surface:ident $($topic:ident::$case:ident,)+) => {
        mod $name {
            $(#[test]
            fn $case() {
                crate::$topic::$case(crate::surface::Surface::$surface);
            })+
        }
    };
}

on_every_surface![
    discovering::the_index_names_every_stream_and_connection,
    discovering::a_stream_shows_its_fields_and_what_each_accepts,
    discovering::a_stream_of_several_sources_is_shown_for_each,
    discovering::a_connection_narrows_what_is_shown,
    discovering::the_whole_schema_of_one_stream_is_given,
    discovering::the_whole_schema_of_a_shared_stream_asks_for_the_connection,
    discovering::the_whole_schema_of_everything_is_refused,
    discovering::what_the_schema_advertises_is_accepted,
    listing::pages_lead_to_the_end_with_every_record_once,
    listing::keys_of_any_form_are_listed_and_fetched,
    listing::filters_keep_exactly_what_matches,
    listing::arrays_are_filtered_and_grouped_by_their_items,
    listing::ranges_may_be_open_or_closed,
    listing::order_is_kept_in_both_directions,
    listing::a_projection_leaves_exactly_the_named_fields,
    listing::a_view_is_a_named_projection,
    listing::all_that_match_are_counted_when_asked,
    listing::related_records_come_along,
    listing::a_page_may_be_of_another_size_than_the_last,
    changing::changes_are_told_once_with_tombstones,
    changing::changes_page_to_the_end_and_then_nothing_follows,
    changing::a_search_that_goes_on_in_a_changed_index_says_so,
    changing::a_change_outside_the_grant_is_no_change,
    figuring::counts_are_exact,
    figuring::sums_and_extremes_agree_with_the_records,
    figuring::groups_and_their_rest_make_the_whole,
    figuring::buckets_of_time_make_the_whole,
    figuring::distinct_values_are_counted,
    figuring::an_average_is_refused_by_name,
    searching::evidence_is_found_again_at_its_offsets,
    searching::evidence_is_marked_and_stands_in_its_field,
    searching::every_hit_names_its_source,
    searching::hits_page_to_the_end_once_each,
    searching::a_search_is_narrowed_by_stream_connection_and_filter,
    searching::phrases_prefixes_and_exclusions_are_understood,
    searching::hits_are_counted_when_asked,
    searching::nothing_found_is_an_answer,
    fetching::a_record_is_fetched_as_it_was_imported,
    fetching::a_projected_record_leaks_nothing,
    fetching::a_record_without_its_connection_is_found_where_only_one_has_the_stream,
    fetching::a_record_without_its_connection_is_ambiguous_where_two_have_the_stream,
    fetching::a_handle_is_taken_in_every_form,
    windowing::windows_make_the_whole_text,
    windowing::windows_go_back_as_they_went_forth,
    windowing::a_word_is_found_with_its_surroundings,
    windowing::an_empty_place_and_the_end_are_told,
    windowing::what_was_quoted_is_checked,
    narrowing::a_field_that_is_not_granted_is_nowhere,
    narrowing::a_time_that_is_not_granted_is_nowhere,
    narrowing::a_stream_that_is_not_granted_is_nowhere,
    narrowing::a_connection_that_is_not_granted_is_nowhere,
    narrowing::a_grant_that_was_ended_reads_nothing,
    refusing::a_stream_outside_the_grant_is_refused_whether_it_exists_or_not,
    refusing::a_field_outside_the_grant_is_refused_wherever_it_is_named,
    refusing::a_question_that_is_too_long_to_be_sent_is_refused,
    refusing::cursors_hold_for_their_question_only,
    refusing::a_cursor_of_another_grant_is_refused,
    refusing::filters_that_cannot_be_are_refused,
    refusing::what_is_not_there_is_not_found,
    refusing::an_ambiguous_read_lists_the_connections_and_works_with_one,
    refusing::a_long_choice_is_cut_and_counted,
    refusing::windows_of_what_is_no_text_are_refused,
    refusing::an_order_that_is_not_declared_is_refused,
];
